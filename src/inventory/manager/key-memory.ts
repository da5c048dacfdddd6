import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { freshKey, type KeyState, type KeyStatus } from '../core/step.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { RunToken } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { EntrySnapshot } from './entry-snapshot.ts';

/**
 * State of a key in memory while this replica is the leader. Its loop changes it, one event at a time. There is one per component and
 * entry, so it must be small.
 */
export class KeyMemory {
  readonly key: ComponentKey;
  readonly text: string;
  /** State after the last `step`. The executor only replaces the stored record and the status. */
  state: KeyState = freshKey;
  /** The last known registration: runs may remain after it is deleted. */
  registration: Registration | undefined;
  run: CurrentRun | undefined;
  /** The API server rejected the record in `state`. The store still contains the previous one. */
  unstored = false;
  /**
   * `retry`: handling an event failed, and the key will be retried. `reload`: it is also unknown which effects were executed. All events
   * are dropped until the key is reloaded from the store.
   */
  recovery: 'retry' | 'reload' | undefined;
  /** The oldest trigger without a run: its lane and its time in monotonic milliseconds. */
  oldestTrigger: { readonly lane: number; readonly since: number } | undefined;
  /** The loop was dropped. */
  dropped = false;
  #lastWrite: { readonly from: string; readonly stored: StoredRecord } | undefined;

  constructor(key: ComponentKey) {
    this.key = key;
    this.text = keyText(key);
  }

  noteTrigger(lane: number, since: number): void {
    this.oldestTrigger ??= { lane, since };
  }

  /** Whether a run is active. A draining run counts although its credential is revoked. */
  get hasActiveRun(): boolean {
    const { phase, stored } = this.state;
    if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
    return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
  }

  /** Milliseconds that remain of the current run's maximum duration; `monotonicMs` is the current time. */
  remainingMs(monotonicMs: number): number {
    const { lastStart } = this.state;
    if (lastStart === undefined || !this.run) return 0;
    return lastStart + this.run.registration.maxRunMs - monotonicMs;
  }

  /** Continues the run that the record says is active, even if another process started it. */
  adopt(): void {
    const record = this.state.stored?.record;
    if (!record || !this.registration || !this.hasActiveRun || this.run?.seq === record.seq) return;
    this.run = new CurrentRun(record, this.registration);
  }

  /** Resets everything that can be reloaded or may be wrong. */
  reset(): void {
    const { status, recentStarts, lastStart } = this.state;
    this.state = { ...freshKey, status, recentStarts, lastStart };
    this.run = undefined;
  }

  setStatus(status: KeyStatus | undefined): void {
    this.state = { ...this.state, status };
  }

  /** Records that `next` replaced `base` and was stored as `stored`. */
  recordWrite(base: StoredRecord, next: RunRecord, stored: StoredRecord): void {
    this.#lastWrite = { from: base.resourceVersion, stored };
    // `step` may have replaced the record meanwhile.
    if (this.state.stored?.record === next) this.state = { ...this.state, stored };
  }

  /** The stored version after this key replaced `base`. */
  latestStored(base: StoredRecord): StoredRecord {
    return this.#lastWrite?.from === base.resourceVersion ? this.#lastWrite.stored : base;
  }
}

/** Data of a run that this process started. */
interface Start {
  readonly snapshot: EntrySnapshot;
  readonly token: RunToken;
}

/** The current run, with the registration at its start. */
export class CurrentRun {
  readonly seq: number;
  readonly registration: Registration;
  /** The version of the entry at the start; undefined if another process started the run. */
  readonly snapshot: EntrySnapshot | undefined;
  #token: RunToken | undefined;
  #pendingToken: RunToken | undefined;
  readonly #credentials: string[];

  constructor(record: RunRecord, registration: Registration, start?: Start) {
    this.seq = record.seq;
    this.registration = registration;
    this.snapshot = start?.snapshot;
    this.#token = start?.token;
    this.#credentials = [record.credentialId, record.previousCredential?.id].filter((id) => id !== undefined);
  }

  /** The current token; undefined if another process issued it. */
  get token(): RunToken | undefined {
    return this.#token;
  }

  /** A refreshed token whose ID is not stored in the record yet. */
  get pendingToken(): RunToken | undefined {
    return this.#pendingToken;
  }

  /** IDs of all tokens of the run. */
  get credentials(): readonly string[] {
    return this.#credentials;
  }

  setPendingToken(token: RunToken): void {
    this.#pendingToken = token;
  }

  /** Adds a refreshed token. The previous one stays valid. */
  addToken(token: RunToken): void {
    this.#token = token;
    this.#pendingToken = undefined;
    this.#credentials.push(token.id);
  }
}
