import type { Journal } from '../../audit/journal.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { RecordingArchive, RecordingName } from './sink.ts';

const CHECK_MS = 60 * 60_000;
/** Limit of one check; the next one continues. */
const MAX_DELETIONS = 1000;

interface RetentionDeps {
  readonly recordings: RecordingArchive;
  /** How long a recording stays after its last byte. */
  readonly retentionMs: number;
  /** An open session without output can have a recording older than `retentionMs`. */
  readonly isOpen: (name: RecordingName) => boolean;
  readonly journal: Pick<Journal, 'append'>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
}

/** Deletes old recordings: hourly, at most `MAX_DELETIONS` at a time. */
export class RecordingRetention {
  readonly #deps: RetentionDeps;
  #cancel: Cancel = () => {};
  #closed = false;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  /** Resolves after the first check. Never rejects. */
  async start(): Promise<void> {
    await this.#check();
    if (!this.#closed) this.#cancel = this.#deps.clock.schedule(CHECK_MS, () => void this.start());
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  async #check(): Promise<void> {
    const { recordings, retentionMs, isOpen, clock, log } = this.#deps;
    let deleted = 0;
    try {
      for await (const { writtenMs, ...name } of recordings.list()) {
        if (this.#closed || deleted >= MAX_DELETIONS) break;
        // `!(… >= …)` also skips recordings whose age is NaN.
        if (!(clock.now() - writtenMs >= retentionMs) || isOpen(name)) continue;
        await this.#delete(name);
        deleted += 1;
      }
    } catch (error) {
      log.warn('cannot delete old recordings; the gateway tries again in an hour', { error: describe(error) });
    }
  }

  /** The audit line comes first, so that the journal names each deleted recording. */
  async #delete(name: RecordingName): Promise<void> {
    const { recordings, journal } = this.#deps;
    await journal.append({
      event: 'session',
      verdict: 'deleted',
      who: { user: '' },
      what: { operation: 'DELETE', apiVersion: 'v1', kind: 'Recording', namespace: name.namespace },
      session: name.session,
      code: 'RecordingExpired',
    });
    await recordings.delete(name);
  }
}
