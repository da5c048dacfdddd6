import { lstat, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Journal } from '../../audit/journal.ts';
import { isRecordingFolder, isRecordingName } from '../../audit/verify/recordings.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Log } from '../../observe/log.ts';

/** Interval of the checks, milliseconds. */
const CHECK_MS = 60 * 60_000;
/** Maximum number of deletions in one check. The next check continues. */
const MAX_DELETIONS = 1000;

interface RetentionDeps {
  /** The folder of the recordings. */
  readonly folder: string;
  /** Age from which a recording is deleted, milliseconds since its last byte. */
  readonly retentionMs: number;
  /** Whether the session is being recorded by this process. A silent session writes nothing for a long time. */
  readonly isOpen: (session: string) => boolean;
  readonly journal: Pick<Journal, 'append'>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
}

/** Deletes old recordings, hourly. It touches only files with the name of a recording, and follows no link. */
export class RecordingRetention {
  readonly #deps: RetentionDeps;
  #cancel: Cancel = () => {};
  #closed = false;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  /** Checks now, and then hourly until `close`. */
  async start(): Promise<void> {
    await this.#check();
    if (!this.#closed) this.#cancel = this.#deps.clock.schedule(CHECK_MS, () => void this.start());
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  async #check(): Promise<void> {
    const { folder, log } = this.#deps;
    let left = MAX_DELETIONS;
    try {
      for await (const entry of await opendir(folder)) {
        if (left > 0 && entry.isDirectory() && isRecordingFolder(entry.name))
          left -= await this.#checkNamespace(entry.name, left);
      }
    } catch (error) {
      log.warn('cannot delete old recordings', { folder, error: describe(error) });
    }
  }

  /** Returns the number of deletions. */
  async #checkNamespace(namespace: string, most: number): Promise<number> {
    const { folder, isOpen } = this.#deps;
    let deleted = 0;
    for await (const entry of await opendir(join(folder, namespace))) {
      const session = entry.name.replace(/\.cast$/, '');
      if (this.#closed || deleted >= most) break;
      if (!entry.isFile() || session === entry.name || !isRecordingName(namespace, session) || isOpen(session))
        continue;
      if (await this.#deleteIfOld(namespace, session)) deleted += 1;
    }
    return deleted;
  }

  async #deleteIfOld(namespace: string, session: string): Promise<boolean> {
    const { folder, retentionMs, journal, clock } = this.#deps;
    const path = join(folder, namespace, `${session}.cast`);
    const found = await lstat(path).catch(() => undefined);
    if (!found || clock.now() - found.mtimeMs < retentionMs) return false;
    // The line comes first, so that the journal explains each missing recording.
    await journal.append({
      event: 'session',
      verdict: 'deleted',
      who: { user: '' },
      what: { operation: 'DELETE', apiVersion: 'v1', kind: 'Recording', namespace },
      session,
      code: 'RecordingExpired',
    });
    // Another replica may have deleted it.
    await unlink(path).catch((error: unknown) => {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    });
    return true;
  }
}
