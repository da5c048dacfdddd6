import { randomUUID } from 'node:crypto';
import type { Cancel, Clock } from '../kit/clock.ts';
import { RecentMap } from '../kit/recent-map.ts';
import type { Refusal } from './answers.ts';
import type { LiveGrant, LiveGrants } from './live-grants.ts';
import { type StreamEnd, timeOfDay } from './stream-end.ts';

/** A stream, the call that opens it, or the answer to a read such as a followed log. */
export interface Endable {
  /** Has no effect after the first call. */
  end(reason: StreamEnd): void;
  /** For a person at a terminal; does nothing without one. */
  warn(text: string): void;
}

/** One stream, or one read, of one grant. */
export interface Session {
  /** A random UUID; audit lines, the AccessSession, and the recording have it. */
  readonly id: string;
  /** Sets what the session ends; ends it at once if `ending` has a reason. */
  attach(stream: Endable): void;
  /**
   * The session or access ended, this replica stops, or cannot verify the grant (`Unverifiable`).
   */
  ending(): StreamEnd | undefined;
  /** Its grant stays open. Without a stream yet, `attach` ends it. */
  end(reason: StreamEnd): void;
  /** Call it when the stream is over. */
  close(): void;
}

const MAX_SESSIONS = 1000;
/** In one replica. */
const MAX_PER_GRANT = 64;
/** Streams of a grant that may begin at once. Each costs at least two writes to the API server. */
const MAX_AT_ONCE = 200;
/** After those, one more may begin each time this has passed. */
const PACE_MS = 100;
/** Grants whose streams are counted. */
const MAX_COUNTED = 1024;

export const tooManySessions: Refusal = {
  status: 429,
  code: 'TooManySessions',
  message:
    'the grant has 64 open sessions in this replica, or this replica has 1,000, or the grant began more sessions than allowed (200 at once, then 10 a second); close some, or try again later',
};

/** Users at a terminal are warned so long before the end. */
const WARNINGS_MS = [10 * 60_000, 2 * 60_000];
/** Revocations could stop reaching this replica, and the wall clock could jump. */
const CHECK_MS = 5_000;
/** How long a closing process waits for the end of its sessions. */
const CLOSE_MS = 3_000;

interface SessionState {
  stream?: Endable;
  /** Why the session ended while its grant stayed open. */
  end?: StreamEnd;
}

/** If the grant ends, they end together. */
interface GrantSessions {
  readonly namespace: string;
  readonly name: string;
  readonly streams: Map<string, SessionState>;
  endMs: number;
  /** Of the timer for the next warning, or the end. */
  cancel: Cancel;
}

/** The sessions of this replica. A session ends when its grant ends. */
export class Sessions {
  readonly #grants: LiveGrants;
  readonly #clock: Clock;
  readonly #byGrant = new Map<string, GrantSessions>();
  readonly #unsubscribe: () => void;
  /** By grant: when `MAX_AT_ONCE` streams may begin again; monotonic. Each adds `PACE_MS`. */
  readonly #budgetFullAtMs = new RecentMap<string, number>(MAX_COUNTED);
  #count = 0;
  #cancelCheck: Cancel = () => {};
  #stopped: StreamEnd | undefined;
  #onEmpty: () => void = () => {};

  constructor(grants: LiveGrants, clock: Clock) {
    this.#grants = grants;
    this.#clock = clock;
    this.#unsubscribe = grants.subscribe((namespace, name) => this.#recheck(`${namespace}/${name}`));
    this.#checkStaleness();
  }

  get count(): number {
    return this.#count;
  }

  /** Counts a stream that is about to begin. False, and not counted, after too many. */
  countStream({ namespace, name }: Pick<LiveGrant, 'namespace' | 'name'>): boolean {
    const nowMs = this.#clock.monotonic();
    const key = `${namespace}/${name}`;
    const budgetFullAtMs = Math.max(nowMs, this.#budgetFullAtMs.get(key) ?? 0) + PACE_MS;
    if (budgetFullAtMs - nowMs > MAX_AT_ONCE * PACE_MS) return false;
    this.#budgetFullAtMs.set(key, budgetFullAtMs);
    return true;
  }

  /** Returns nothing if the grant or this replica has too many open sessions. */
  begin({ namespace, name, endMs }: LiveGrant): Session | undefined {
    const key = `${namespace}/${name}`;
    const sessions = this.#byGrant.get(key) ?? { namespace, name, streams: new Map(), endMs, cancel: () => {} };
    if (this.#count >= MAX_SESSIONS || sessions.streams.size >= MAX_PER_GRANT) return undefined;
    const id = randomUUID();
    const isFirst = sessions.streams.size === 0;
    const state: SessionState = {};
    sessions.streams.set(id, state);
    this.#byGrant.set(key, sessions);
    this.#count += 1;
    if (isFirst) this.#recheck(key);
    const ending = (): StreamEnd | undefined => {
      const end = state.end ?? this.#stopped ?? this.#grants.endOf(namespace, name);
      return typeof end === 'object' ? end : undefined;
    };
    return {
      id,
      attach: (stream) => {
        if (!sessions.streams.has(id)) return;
        state.stream = stream;
        const end = ending();
        if (end) stream.end(end);
      },
      ending,
      end: (reason) => {
        state.end ??= reason;
        state.stream?.end(state.end);
      },
      close: () => {
        if (!sessions.streams.delete(id)) return;
        this.#count -= 1;
        if (sessions.streams.size === 0) {
          sessions.cancel();
          this.#byGrant.delete(key);
        }
        if (this.#count === 0) this.#onEmpty();
      },
    };
  }

  /** Ends all sessions with `Restarting`, also later ones; waits up to 3 s for their processes. */
  close(): Promise<void> {
    this.#unsubscribe();
    this.#cancelCheck();
    const stopped: StreamEnd = { code: 'Restarting', atMs: this.#clock.now() };
    this.#stopped = stopped;
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(CLOSE_MS, resolve);
      this.#onEmpty = () => {
        cancel();
        resolve();
      };
      for (const sessions of this.#byGrant.values()) endAll(sessions, stopped);
      if (this.#count === 0) this.#onEmpty();
    });
  }

  /** Ends the sessions if the grant is over; otherwise sets the timer for a warning or the end. */
  #recheck(key: string): void {
    const sessions = this.#byGrant.get(key);
    if (!sessions) return;
    sessions.cancel();
    const end = this.#grants.endOf(sessions.namespace, sessions.name);
    if (typeof end === 'object') {
      endAll(sessions, end);
      return;
    }
    sessions.endMs = end;
    const leftMs = end - this.#clock.now();
    const nextMs = WARNINGS_MS.find((beforeMs) => beforeMs < leftMs) ?? 0;
    sessions.cancel = this.#clock.schedule(leftMs - nextMs, () => {
      const stillMs = sessions.endMs - this.#clock.now();
      if (nextMs > 0 && stillMs <= nextMs) warnAll(sessions, nextMs);
      this.#recheck(key);
    });
  }

  /** A broken watch reports no revocation, and no timer notices that the wall clock has jumped. */
  #checkStaleness(): void {
    this.#cancelCheck = this.#clock.schedule(CHECK_MS, () => {
      const nowMs = this.#clock.now();
      const isDue = ({ endMs }: GrantSessions): boolean => this.#grants.isStale || endMs <= nowMs;
      for (const [key, sessions] of [...this.#byGrant]) if (isDue(sessions)) this.#recheck(key);
      this.#checkStaleness();
    });
  }
}

function endAll({ streams, cancel }: GrantSessions, end: StreamEnd): void {
  cancel();
  for (const { stream } of streams.values()) stream?.end(end);
}

function warnAll({ streams, endMs }: GrantSessions, beforeMs: number): void {
  const text = `access ends in ${beforeMs / 60_000} minutes, at ${timeOfDay(endMs)}`;
  for (const { stream } of streams.values()) stream?.warn(text);
}
