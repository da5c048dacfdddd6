import { createHash } from 'node:crypto';
import type { Journal } from '../../audit/journal.ts';
import type { AuditRecord } from '../../audit/record.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import type { Log } from '../../observe/log.ts';
import { castHeader } from './cast.ts';
import type { CastReader, SessionCast } from './session-cast.ts';
import type { RecordingFile, RecordingSink } from './sink.ts';

/** Maximum size of a chunk, bytes. The journal has a line with the SHA-256 of each chunk. */
const CHUNK = 64 * 1024;
/** Maximum number of bytes of one session that wait for the sink. */
const MAX_WAITING = 1024 * 1024;
/** Maximum number of bytes of all sessions that wait for the sink. */
const MAX_WAITING_IN_ALL = 64 * 1024 * 1024;
/**
 * While more bytes of a session wait for the sink, its stream pauses. This is below the maximum, because what the stream has read by then
 * can still add several times as many bytes.
 */
const PAUSE_ABOVE = 256 * 1024;
/** While the sessions together have more waiting bytes, a stream pauses as soon as a whole chunk of its own waits. */
const PAUSE_ABOVE_IN_ALL = MAX_WAITING_IN_ALL / 2;
/** Maximum size of a recording, bytes, so that one session cannot fill the disk of all. */
const MAX_RECORDING = 1024 * 1024 * 1024;
/** How long the sink may take for one call, milliseconds. */
const SINK_MS = 5000;

interface RecorderDeps {
  /** Undefined: this process stores no recordings. */
  readonly sink: RecordingSink | undefined;
  readonly journal: Pick<Journal, 'append'>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
  /** Counts a session whose recording failed, at its start or later. */
  readonly onLost: () => void;
}

/** A session to record. */
export interface RecordedSession {
  readonly namespace: string;
  /** The session: a UUID. */
  readonly id: string;
  /** The events to record. */
  readonly cast: SessionCast;
  /** The audit line of the session. */
  readonly record: Omit<AuditRecord, 'verdict'>;
}

/** Records sessions. It gets copies of what passes, and pauses a stream only while its output comes faster than the sink takes it. */
export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #waiting = { bytes: 0 };
  readonly #open = new Map<string, Recording>();

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** Begins to record the session. */
  begin(session: RecordedSession): Recording {
    const recording = new Recording(session, this.#deps, this.#waiting);
    this.#open.set(session.id, recording);
    void recording.ended.then(() => this.#open.delete(session.id));
    return recording;
  }

  /** Whether the session is being recorded. */
  isOpen(session: string): boolean {
    return this.#open.has(session);
  }

  /** Completes all recordings. Call it after the sessions have ended. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((recording) => recording.end()));
  }
}

/** Omits the reason, which may contain paths of the server that users need not know. */
const unavailable = (): CodedError =>
  new CodedError(
    'RecorderUnavailable',
    'the template requires recordings, and the gateway cannot store one now; try again, or tell an administrator, who finds the reason in the log of the gateway; if your template allows it, ask for emergency access',
  );

/** The recording of one session. */
export class Recording implements CastReader {
  /** Resolves once the recording exists and survives a crash. Rejects with CodedError `RecorderUnavailable`. */
  readonly durable: Promise<void>;
  /** Resolves once it is complete, or, if it was lost, once its session is over. */
  readonly ended: Promise<void>;
  readonly #session: RecordedSession;
  readonly #deps: RecorderDeps;
  /** Bytes of all sessions that wait for the sink. */
  readonly #allWaiting: { bytes: number };
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Size of the recording with the bytes that wait, but without its header, bytes. */
  #size = 0;
  /** Number of chunks in the journal. */
  #chunk = 0;
  #file: RecordingFile | undefined;
  #state: 'open' | 'ending' | 'lost' | 'closed' = 'open';
  /** Set while a call to the sink runs. */
  #writing: Promise<void> | undefined;
  #cancelFlush: Cancel | undefined;
  #ending: Promise<void> | undefined;
  readonly #stopReading: () => void;
  #room: Promise<void> | undefined;
  #onRoom: () => void = () => {};
  #onLost: () => void = () => {};
  #onEnded: () => void = () => {};

  constructor(session: RecordedSession, deps: RecorderDeps, allWaiting: { bytes: number }) {
    this.#session = session;
    this.#deps = deps;
    this.#allWaiting = allWaiting;
    this.#stopReading = session.cast.add(this);
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    const created = this.#create();
    this.durable = created;
    this.#writing = this.#afterWrite(
      created.then(
        () => this.#write(),
        () => {},
      ),
    );
  }

  get isLost(): boolean {
    return this.#state === 'lost';
  }

  /** Calls `listener` when the recording is lost; at once if it is already. */
  whenLost(listener: () => void): void {
    this.#onLost = listener;
    if (this.#state === 'lost') listener();
  }

  /**
   * Pauses the stream while the sink is behind: otherwise, a user could end the recording by output that is too fast for the sink. A sink
   * that does not answer delays a stream by 5 s.
   */
  get room(): Promise<void> | undefined {
    return this.#room;
  }

  event(line: Buffer): void {
    if (this.#state !== 'open') return;
    this.#size += line.length;
    const isFull =
      this.#waitingBytes + line.length > MAX_WAITING || this.#allWaiting.bytes + line.length > MAX_WAITING_IN_ALL;
    if (isFull || this.#size > MAX_RECORDING) {
      this.#lose(
        isFull ? 'the sink is too slow for the output' : `the recording would have over ${MAX_RECORDING} bytes`,
      );
      return;
    }
    this.#waiting.push(line);
    this.#count(line.length);
    if (this.#mustPause()) {
      this.#room ??= new Promise((resolve) => {
        this.#onRoom = resolve;
      });
    }
    this.#schedule();
  }

  missed(why: string): void {
    this.#lose(why);
  }

  /** Ends the recording after its session. Resolves once the recording is complete, or lost. Later calls wait for the same end. */
  end(): Promise<void> {
    this.#ending ??= this.#finish();
    return this.#ending;
  }

  async #finish(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'ending';
      this.#stopReading();
      this.#cancelFlush?.();
      await this.#writing;
      await this.#write();
    }
    await this.#writing;
    this.#onEnded();
  }

  #schedule(): void {
    const { sink, clock } = this.#deps;
    if (this.#waitingBytes >= CHUNK) this.#flush();
    else if (sink) this.#cancelFlush ??= clock.schedule(sink.flushMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#waiting.length > 0) this.#writing ??= this.#afterWrite(this.#write());
  }

  #afterWrite(writing: Promise<void>): Promise<void> {
    return writing.finally(() => {
      this.#writing = undefined;
      // Schedule what came meanwhile. If the stream has paused, no later event does it.
      if (this.#state === 'open' && this.#waiting.length > 0) this.#schedule();
    });
  }

  async #create(): Promise<void> {
    const { sink } = this.#deps;
    const { namespace, id, cast } = this.#session;
    try {
      if (!sink) throw new Error('the gateway has no --recordings');
      const header = Buffer.from(castHeader(id, cast.startedAtMs));
      this.#file = await this.#inTime(sink.create({ namespace, session: id }, header), (late) => late.close());
      await this.#journal(header);
    } catch (error) {
      this.#lose(describe(error));
      throw unavailable();
    }
  }

  /**
   * Writes what waits, and then more only while a whole chunk waits, so that little output causes few lines in the journal. At the end of
   * the session, writes everything, and completes the recording. Never rejects.
   */
  async #write(): Promise<void> {
    try {
      const isDue = (): boolean =>
        this.#waitingBytes >= CHUNK || (this.#state === 'ending' && this.#waiting.length > 0);
      for (let due = this.#waiting.length > 0; due && this.#file && this.#state !== 'lost'; due = isDue()) {
        const bytes = Buffer.concat(this.#waiting.splice(0));
        try {
          await this.#inTime(this.#file.append(bytes));
        } finally {
          this.#count(-bytes.length);
        }
        for (let at = 0; at < bytes.length; at += CHUNK) await this.#journal(bytes.subarray(at, at + CHUNK));
      }
      if (this.#state === 'ending') await this.#complete();
    } catch (error) {
      this.#lose(describe(error));
    }
  }

  async #complete(): Promise<void> {
    const { journal } = this.#deps;
    if (!this.#file) return;
    await this.#inTime(this.#file.close());
    this.#file = undefined;
    this.#state = 'closed';
    await journal.append({ ...this.#session.record, verdict: 'recorded', chunk: this.#chunk, complete: true });
  }

  /**
   * Writes the audit line of the next chunk. Call it after the chunk is stored, so that the recording contains each chunk of the journal.
   */
  #journal(chunk: Buffer): Promise<void> {
    const sha256 = createHash('sha256').update(chunk).digest('hex');
    this.#chunk += 1;
    return this.#deps.journal.append({
      ...this.#session.record,
      verdict: 'recorded',
      chunk: this.#chunk,
      bytes: chunk.length,
      sha256,
    });
  }

  #lose(why: string): void {
    if (this.#state === 'lost' || this.#state === 'closed') return;
    this.#state = 'lost';
    this.#stopReading();
    this.#cancelFlush?.();
    for (const { length } of this.#waiting.splice(0)) this.#count(-length);
    const { journal, log, onLost } = this.#deps;
    const { id, record } = this.#session;
    log.warn('a session is not recorded', { session: id, reason: why });
    onLost();
    const line: AuditRecord = { ...record, verdict: 'unrecorded', code: 'RecordingLost', message: why };
    journal
      .append(line)
      .catch((error: unknown) => log.warn('no audit line for a lost recording', { error: describe(error) }));
    this.#onLost();
    const file = this.#file;
    this.#file = undefined;
    file?.close().catch(() => {});
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#allWaiting.bytes += bytes;
    if (bytes > 0 || !this.#room || this.#mustPause()) return;
    this.#room = undefined;
    this.#onRoom();
  }

  /**
   * Whether the stream must pause until the sink has caught up. If the sessions together have too many waiting bytes, a session pauses only
   * while a whole chunk of its own waits. That chunk is written at once, so no session waits for others alone.
   */
  #mustPause(): boolean {
    const limit = this.#allWaiting.bytes < PAUSE_ABOVE_IN_ALL ? PAUSE_ABOVE : CHUNK;
    return this.#state === 'open' && this.#waitingBytes >= limit;
  }

  /** Settles as `call`, but rejects after `SINK_MS`. If the sink answers later, calls `late` with the answer. */
  #inTime<T>(call: Promise<T>, late: (answer: T) => unknown = () => {}): Promise<T> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const cancel = this.#deps.clock.schedule(SINK_MS, () => {
        isLate = true;
        reject(new Error(`the sink did not answer for ${SINK_MS / 1000} s`));
      });
      call.then(
        (answer) => {
          cancel();
          if (isLate) Promise.resolve(late(answer)).catch(() => {});
          else resolve(answer);
        },
        (error: unknown) => {
          cancel();
          reject(error);
        },
      );
    });
  }
}
