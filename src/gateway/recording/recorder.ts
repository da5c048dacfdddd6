import { createHash, type Hash } from 'node:crypto';
import type { Journal } from '../../audit/journal.ts';
import type { AuditRecord } from '../../audit/record.ts';
import { maxChunk } from '../../audit/verify/recordings.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import type { Log } from '../../observe/log.ts';
import { castHeader } from './cast.ts';
import type { CastReader, SessionCast } from './session-cast.ts';
import type { RecordingFile, RecordingSink } from './sink.ts';

/** From this many waiting bytes, the recorder writes at once. */
const WRITE_FROM = 64 * 1024;
/** Bytes of one session that may wait for the sink. */
const MAX_WAITING = 1024 * 1024;
/** Bytes of all sessions that may wait for the sink. */
const MAX_WAITING_IN_ALL = 64 * 1024 * 1024;
/**
 * Far below the maximum: what a paused stream has already read can still add several times this.
 */
const PAUSE_FROM = 256 * 1024;
/** From this many bytes of all sessions, a stream pauses from `WRITE_FROM` of its own. */
const PAUSE_FROM_IN_ALL = MAX_WAITING_IN_ALL / 2;
/** Bytes of one recording, so that one session cannot fill the storage that all share. */
const MAX_RECORDING = 1024 * 1024 * 1024;
const SINK_MS = 5000;

interface RecorderDeps {
  /** Absent: this process stores no recordings. */
  readonly sink: RecordingSink | undefined;
  readonly journal: Pick<Journal, 'append'>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
  readonly onLost: () => void;
}

export interface RecordedSession {
  readonly namespace: string;
  /** A UUID. */
  readonly id: string;
  readonly cast: SessionCast;
  /** Fields of every audit line of the recording. */
  readonly record: Omit<AuditRecord, 'verdict'>;
}

/** Pauses a stream only while its events come faster than the sink stores them. */
export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #waiting = { bytes: 0 };
  readonly #open = new Map<string, Recording>();

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  begin(session: RecordedSession): Recording {
    const recording = new Recording(session, this.#deps, this.#waiting);
    this.#open.set(session.id, recording);
    void recording.ended.then(() => this.#open.delete(session.id));
    return recording;
  }

  /** True also if the recording was lost since. */
  isOpen(session: string): boolean {
    return this.#open.has(session);
  }

  /** Call it after the sessions have ended. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((recording) => recording.end()));
  }
}

/** For users, so without the reason, which may contain paths of the server. */
const unavailable = (): CodedError =>
  new CodedError(
    'RecorderUnavailable',
    'the template requires recordings, and the gateway cannot store one now; try again, or tell an administrator, who finds the reason in the log of the gateway; if your template allows it, ask for emergency access',
  );

/** The file and the journal grow together: each stored chunk gets an audit line with its hash. */
export class Recording implements CastReader {
  /** The recording exists and survives a crash. Rejects with CodedError `RecorderUnavailable`. */
  readonly durable: Promise<void>;
  /** The session is over, and the recording complete or lost. Never rejects. */
  readonly ended: Promise<void>;
  readonly #session: RecordedSession;
  readonly #deps: RecorderDeps;
  /** Bytes of all sessions. */
  readonly #allWaiting: { bytes: number };
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Bytes of the recording without its header, including those that wait. */
  #size = 0;
  /** Number of chunks whose line is in the journal, or being written. */
  #chunk = 0;
  /** Stored bytes that no line of the journal covers yet. */
  #unproven: { bytes: number; readonly hash: Hash } = { bytes: 0, hash: createHash('sha256') };
  /** When the last line was written; monotonic. */
  #provenAtMs = 0;
  #file: RecordingFile | undefined;
  #state: 'open' | 'ending' | 'lost' | 'closed' = 'open';
  /** While the recording is created, or bytes are written. */
  #writing: Promise<void> | undefined;
  #cancelFlush: Cancel | undefined;
  #ending: Promise<void> | undefined;
  readonly #stopReading: () => void;
  /** Set while the stream must pause; `#onDrained` resolves it. */
  #drained: Promise<void> | undefined;
  #onDrained: () => void = () => {};
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

  /** Also calls it if the recording is lost already. Replaces an earlier listener. */
  whenLost(listener: () => void): void {
    this.#onLost = listener;
    if (this.#state === 'lost') listener();
  }

  /** Without the pause, output too fast for the sink would let a user end the recording. */
  get drained(): Promise<void> | undefined {
    return this.#drained;
  }

  event(line: Buffer): void {
    if (this.#state !== 'open') return;
    this.#size += line.length;
    const isFull =
      this.#waitingBytes + line.length > MAX_WAITING || this.#allWaiting.bytes + line.length > MAX_WAITING_IN_ALL;
    if (isFull || this.#size > MAX_RECORDING) {
      this.#lose(
        isFull
          ? 'the volume or bucket of the recordings is too slow for the output; check its throughput'
          : `the recording would have over ${MAX_RECORDING} bytes`,
      );
      return;
    }
    this.#waiting.push(line);
    this.#count(line.length);
    if (this.#mustPause()) {
      this.#drained ??= new Promise((resolve) => {
        this.#onDrained = resolve;
      });
    }
    this.#schedule();
  }

  missed(why: string): void {
    this.#lose(why);
  }

  /** Resolves once the recording is complete or lost. */
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
    if (this.#waitingBytes >= WRITE_FROM) this.#flush();
    else if (sink) this.#cancelFlush ??= clock.schedule(sink.flushMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#hasWork) this.#writing ??= this.#afterWrite(this.#write());
  }

  get #hasWork(): boolean {
    return this.#waiting.length > 0 || this.#unproven.bytes > 0;
  }

  #afterWrite(writing: Promise<void>): Promise<void> {
    return writing.finally(() => {
      this.#writing = undefined;
      // For events that came during the write: a paused stream brings no later event.
      if (this.#state === 'open' && this.#hasWork) this.#schedule();
    });
  }

  async #create(): Promise<void> {
    const { sink } = this.#deps;
    const { namespace, id, cast } = this.#session;
    try {
      if (!sink)
        throw new Error('the gateway runs without --recordings; set the flag, or gateway.recordings of the chart');
      const header = Buffer.from(castHeader(id, cast.startedAtMs));
      this.#file = await this.#inTime(sink.create({ namespace, session: id }, header), (late) => late.close());
      await this.#prove(header);
      await this.#journal();
    } catch (error) {
      this.#lose(describe(error));
      throw unavailable();
    }
  }

  /**
   * Writes what waits, and a journal line per `maxChunk` bytes, or when the last line is `flushMs`
   * old. Repeats only while much waits, so that little output causes few writes. Never rejects.
   */
  async #write(): Promise<void> {
    try {
      const isDue = (): boolean =>
        this.#waitingBytes >= WRITE_FROM || (this.#state === 'ending' && this.#waiting.length > 0);
      for (let due = this.#waiting.length > 0; due && this.#file && this.#state !== 'lost'; due = isDue()) {
        const bytes = Buffer.concat(this.#waiting.splice(0));
        try {
          await this.#inTime(this.#file.append(bytes));
        } finally {
          this.#count(-bytes.length);
        }
        await this.#prove(bytes);
      }
      const isLineDue = this.#deps.clock.monotonic() - this.#provenAtMs >= (this.#deps.sink?.flushMs ?? 0);
      if (this.#unproven.bytes > 0 && this.#state !== 'lost' && (isLineDue || this.#state === 'ending'))
        await this.#journal();
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

  async #prove(bytes: Buffer): Promise<void> {
    for (let rest = bytes; rest.length > 0; ) {
      const part = rest.subarray(0, maxChunk - this.#unproven.bytes);
      rest = rest.subarray(part.length);
      this.#unproven.hash.update(part);
      this.#unproven.bytes += part.length;
      if (this.#unproven.bytes === maxChunk) await this.#journal();
    }
  }

  /** Call it after the chunk is stored: the recording has each chunk that the journal names. */
  #journal(): Promise<void> {
    const { bytes, hash } = this.#unproven;
    this.#unproven = { bytes: 0, hash: createHash('sha256') };
    this.#provenAtMs = this.#deps.clock.monotonic();
    this.#chunk += 1;
    return this.#deps.journal.append({
      ...this.#session.record,
      verdict: 'recorded',
      chunk: this.#chunk,
      bytes,
      sha256: hash.digest('hex'),
    });
  }

  #lose(why: string): void {
    if (this.#state === 'lost' || this.#state === 'closed') return;
    this.#state = 'lost';
    this.#stopReading();
    this.#cancelFlush?.();
    for (const { length } of this.#waiting.splice(0)) this.#count(-length);
    const { journal, log, onLost } = this.#deps;
    const { namespace, id, record } = this.#session;
    const unwritten = (error: unknown): void =>
      log.warn('no audit line for a lost recording', { namespace, session: id, error: describe(error) });
    // What is stored stays, so it needs its proof.
    if (this.#unproven.bytes > 0) this.#journal().catch(unwritten);
    log.warn(
      'the recording of a session could not start or continue; if the grant requires the recording, the session does not open, or ends',
      { namespace, session: id, reason: why },
    );
    onLost();
    const line: AuditRecord = { ...record, verdict: 'unrecorded', code: 'RecordingLost', message: why };
    journal.append(line).catch(unwritten);
    this.#onLost();
    const file = this.#file;
    this.#file = undefined;
    file?.close().catch(() => {});
  }

  /** `bytes` may be negative. */
  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#allWaiting.bytes += bytes;
    if (bytes > 0 || !this.#drained || this.#mustPause()) return;
    this.#drained = undefined;
    this.#onDrained();
  }

  /** Beyond half of the common maximum, a stream pauses earlier, but never for others alone. */
  #mustPause(): boolean {
    const limit = this.#allWaiting.bytes < PAUSE_FROM_IN_ALL ? PAUSE_FROM : WRITE_FROM;
    return this.#state === 'open' && this.#waitingBytes >= limit;
  }

  /** Rejects after `SINK_MS`. `late` gets an answer that comes after that. */
  #inTime<T>(call: Promise<T>, late: (answer: T) => unknown = () => {}): Promise<T> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const cancel = this.#deps.clock.schedule(SINK_MS, () => {
        isLate = true;
        reject(new Error(`the volume or bucket of the recordings did not answer for ${SINK_MS / 1000} s; check it`));
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
