import type { Journal } from '../../audit/journal.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { RecordingArchive, RecordingName } from './sink.ts';

/** Interval of the checks, milliseconds. */
const CHECK_MS = 60 * 60_000;
/** Maximum number of deletions in one check. The next check continues. */
const MAX_DELETIONS = 1000;

interface RetentionDeps {
  readonly recordings: RecordingArchive;
  /** Time since the last byte of a recording after which it is deleted, milliseconds. */
  readonly retentionMs: number;
  /** Whether the session of the recording is open. The recording of an open session without output can be older than `retentionMs`. */
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

  /** Checks now, and then hourly until `close`. Resolves after the first check. Never rejects. */
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

  /** Writes the audit line first, so that the journal names each recording that the gateway deleted. */
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
