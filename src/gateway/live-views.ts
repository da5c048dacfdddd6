import type { ServerResponse } from 'node:http';
import type { Cancel, Clock } from '../kit/clock.ts';
import type { Refusal } from './answers.ts';
import { castHeader } from './recording/cast.ts';
import type { CastReader, SessionCast } from './recording/session-cast.ts';
import type { RecordingName } from './recording/sink.ts';
import type { SessionRecord } from './session-audit.ts';

const MAX_PER_SESSION = 8;
/** Viewers of this replica. */
const MAX_VIEWERS = 64;
/** Bytes that wait for one viewer. */
const MAX_WAITING = 1024 * 1024;
/** How long a viewer may take to read the end of a view. */
const VIEW_END_MS = 5_000;

export const castType = 'application/x-asciicast';

export type ViewAnswer = Pick<ServerResponse, 'writeHead' | 'write' | 'end' | 'destroy' | 'writableLength' | 'once'>;

export class LiveSession {
  readonly name: RecordingName;
  /** Absent if the stream has no output for a terminal. */
  readonly cast: SessionCast | undefined;
  readonly record: SessionRecord;
  readonly viewers = new Set<Viewer>();
  reserved = 0;
  isOpen = true;

  constructor(name: RecordingName, cast: SessionCast | undefined, record: SessionRecord) {
    this.name = name;
    this.cast = cast;
    this.record = record;
  }
}

interface ReservedPlace {
  readonly session: LiveSession;
  readonly cast: SessionCast;
  readonly release: () => void;
}

/** The viewers of this replica's open sessions. None delays a stream: a slow viewer is dropped. */
export class LiveViews {
  readonly #clock: Clock;
  readonly #sessions = new Map<string, LiveSession>();
  #reserved = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns a function that ends the views of the session with a reason. */
  begin(session: LiveSession): (reason: string) => void {
    const key = keyOf(session.name);
    this.#sessions.set(key, session);
    return (reason) => {
      session.isOpen = false;
      this.#sessions.delete(key);
      for (const viewer of [...session.viewers]) viewer.end(reason);
    };
  }

  /** The caller must release the place. */
  admit(name: RecordingName): ReservedPlace | Refusal {
    const session = this.#sessions.get(keyOf(name));
    if (!session) return notOpen(name);
    const { cast } = session;
    if (!cast) return nothingToShow(name);
    const release = this.reserve(session);
    return typeof release === 'function' ? { session, cast, release } : release;
  }

  /** Without `session`: for a recording, or a session of another replica. Returns the release. */
  reserve(session?: LiveSession): (() => void) | Refusal {
    if (this.#reserved >= MAX_VIEWERS || (session?.reserved ?? 0) >= MAX_PER_SESSION) return tooManyViewers;
    this.#reserved += 1;
    if (session) session.reserved += 1;
    let isFree = false;
    return () => {
      if (isFree) return;
      isFree = true;
      this.#reserved -= 1;
      if (session) session.reserved -= 1;
    };
  }

  /** Writes the output from now until the session ends. False, with nothing written, if it has. */
  show({ session, cast }: Pick<ReservedPlace, 'session' | 'cast'>, answer: ViewAnswer): boolean {
    if (!session.isOpen) return false;
    session.viewers.add(new Viewer(session, cast, answer, this.#clock));
    return true;
  }
}

const keyOf = ({ namespace, session }: RecordingName): string => `${namespace}/${session}`;

class Viewer implements CastReader {
  readonly #answer: ViewAnswer;
  readonly #cast: SessionCast;
  readonly #clock: Clock;
  readonly #stop: () => void;
  #isEnding = false;
  #cancel: Cancel = () => {};

  constructor(session: LiveSession, cast: SessionCast, answer: ViewAnswer, clock: Clock) {
    this.#answer = answer;
    this.#cast = cast;
    this.#clock = clock;
    answer.writeHead(200, { 'content-type': castType });
    answer.write(castHeader(session.name.session, cast.startedAtMs, cast.size));
    const remove = cast.add(this);
    this.#stop = () => {
      remove();
      session.viewers.delete(this);
    };
    answer.once('close', () => {
      this.#stop();
      this.#cancel();
    });
  }

  event(line: Buffer): void {
    if (this.#answer.writableLength + line.length <= MAX_WAITING) this.#answer.write(line);
    else if (this.#stopEvents()) {
      // Break the answer off: a client takes a complete one for the end of the session.
      this.#answer.write(this.#cast.line('m', tooSlow), () => this.#answer.destroy());
    }
  }

  end(reason: string): void {
    if (this.#stopEvents()) this.#answer.end(this.#cast.lastNote === reason ? '' : this.#cast.line('m', reason));
  }

  /** Breaks the answer off after `VIEW_END_MS`. False if an earlier call did so. */
  #stopEvents(): boolean {
    if (this.#isEnding) return false;
    this.#isEnding = true;
    this.#stop();
    this.#cancel = this.#clock.schedule(VIEW_END_MS, () => this.#answer.destroy());
    return true;
  }
}

const tooSlow = 'this view ends: its reader was too slow; the session goes on; open the view again';

export const notOpen = ({ namespace, session }: RecordingName): Refusal => ({
  status: 404,
  code: 'SessionNotOpen',
  message: `session ${session} is not open in namespace ${namespace}; list open sessions: drawbridge sessions list -n ${namespace}; if it was recorded, play it: drawbridge sessions play ${session} -n ${namespace}`,
});

export const nothingToShow = ({ namespace, session }: RecordingName): Refusal => ({
  status: 400,
  code: 'NotServed',
  message: `session ${session} forwards ports, so it has no output to watch; only sessions of exec and attach can be watched; to end it: drawbridge sessions kill ${session} -n ${namespace}`,
});

export const tooManyViewers: Refusal = {
  status: 429,
  code: 'TooManySessions',
  message: `too many viewers; allowed are ${MAX_PER_SESSION} for a session, and ${MAX_VIEWERS} for a replica of the gateway; end another view, or try again later`,
};
