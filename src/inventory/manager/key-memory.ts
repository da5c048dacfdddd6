import { initialKeyState, type KeyState, type KeyStatus } from '../core/key-state.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { IssuedToken } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { EntrySnapshot } from './entry-snapshot.ts';

/** What the leader remembers of one key; only its loop changes it. One for each key, so small. */
export class KeyMemory {
  readonly key: ComponentKey;
  /** As the work queue and `Limits` use it. */
  readonly keyText: string;
  /** As the last `step` returned it, with the record and status written since. */
  state: KeyState = initialKeyState;
  /** The last known one: runs may outlive the registration. */
  registration: Registration | undefined;
  /** Once its start is stored or it was adopted. */
  run: CurrentRun | undefined;
  /** Whether the API server rejected the last write, or a removal when the key was retired. */
  unstored = false;
  /**
   * `retry`: handling an event failed. `reload`: effects may be missing, too, so events are dropped
   * until the key has been reloaded.
   */
  recovery: 'retry' | 'reload' | undefined;
  /** Why the last start failed, if the cause has a code, such as `NameTaken`. */
  startProblem: { readonly reason: string; readonly message: string } | undefined;
  /** The oldest trigger that waits for a run. `since`: monotonic milliseconds. */
  oldestTrigger: { readonly lane: number; readonly since: number } | undefined;
  /** The entry no longer exists. */
  dropped = false;
  #lastWrite: { readonly baseVersion: string; readonly stored: StoredRecord } | undefined;

  constructor(key: ComponentKey) {
    this.key = key;
    this.keyText = keyText(key);
  }

  noteTrigger(lane: number, since: number): void {
    this.oldestTrigger ??= { lane, since };
  }

  /** A draining run counts although its credential is revoked. */
  get hasActiveRun(): boolean {
    const { phase, stored } = this.state;
    if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
    return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
  }

  /** Until the maximum duration of the run, negative after that; 0 without a run. */
  remainingMs(monotonicMs: number): number {
    const { lastStart } = this.state;
    if (lastStart === undefined || !this.run) return 0;
    return lastStart + this.run.registration.maxRunMs - monotonicMs;
  }

  /** Another process started the run, or the key was reloaded. */
  adopt(): void {
    const record = this.state.stored?.record;
    if (!record || !this.registration || !this.hasActiveRun || this.run?.seq === record.seq) return;
    this.run = new CurrentRun(record, this.registration);
  }

  /** Keeps the status, and what livelock detection and spacing need. */
  reset(): void {
    const { status, recentStarts, lastStart } = this.state;
    this.state = { ...initialKeyState, status, recentStarts, lastStart };
    this.run = undefined;
  }

  setStatus(status: KeyStatus | undefined): void {
    this.state = { ...this.state, status };
  }

  /** `next` replaced `base` and was stored as `stored`. */
  recordWrite(base: StoredRecord, next: RunRecord, stored: StoredRecord): void {
    this.#lastWrite = { baseVersion: base.resourceVersion, stored };
    // `step` may have replaced the record meanwhile.
    if (this.state.stored?.record === next) this.state = { ...this.state, stored };
  }

  /** What the last write stored, if it replaced `base`; otherwise `base`. */
  latestStored(base: StoredRecord): StoredRecord {
    return this.#lastWrite?.baseVersion === base.resourceVersion ? this.#lastWrite.stored : base;
  }
}

interface Start {
  readonly snapshot: EntrySnapshot;
  readonly token: IssuedToken;
}

/** The current run, with the registration at its start or adoption. */
export class CurrentRun {
  readonly seq: number;
  readonly registration: Registration;
  /** At the start; an adopted run has none. */
  readonly snapshot: EntrySnapshot | undefined;
  #token: IssuedToken | undefined;
  #pendingToken: IssuedToken | undefined;
  readonly #credentials: string[];

  constructor(record: RunRecord, registration: Registration, start?: Start) {
    this.seq = record.seq;
    this.registration = registration;
    this.snapshot = start?.snapshot;
    this.#token = start?.token;
    this.#credentials = [record.credentialId, record.previousCredential?.id].filter((id) => id !== undefined);
  }

  /** An adopted run has none until a heartbeat gets one. */
  get token(): IssuedToken | undefined {
    return this.#token;
  }

  /** Refreshed, but its ID is not stored in the record yet. */
  get pendingToken(): IssuedToken | undefined {
    return this.#pendingToken;
  }

  get credentials(): readonly string[] {
    return this.#credentials;
  }

  setPendingToken(token: IssuedToken): void {
    this.#pendingToken = token;
  }

  /** Its ID is stored. The previous token may write as long as the record allows it. */
  addToken(token: IssuedToken): void {
    this.#token = token;
    this.#pendingToken = undefined;
    this.#credentials.push(token.id);
  }
}
