import { initialKeyState, type KeyState, type KeyStatus } from '../core/key-state.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { IssuedToken } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { EntrySnapshot } from './entry-snapshot.ts';

/**
 * State of one key (a component of an entry) that exists only while this replica is the leader. Only the loop of the key changes it, one
 * event at a time. There is one instance per key, so it must be small.
 */
export class KeyMemory {
  readonly key: ComponentKey;
  /** Text form of the key, which the work queue and the limits on parallel runs use. */
  readonly keyText: string;
  /** The state that the last `step` (core/steps/step.ts) returned, with the stored record and the status that were written since. */
  state: KeyState = initialKeyState;
  /** The last known registration. Runs may outlive the registration. */
  registration: Registration | undefined;
  /** The active run, once its start is stored or it was adopted. */
  run: CurrentRun | undefined;
  /** Whether the API server rejected the last write of the record, or the removal of it, of its outputs, or of the component's access. */
  unstored = false;
  /**
   * `retry`: handling an event failed, and the loop will retry the key. `reload`: also, some effects may not have been executed; the loop
   * drops all events until it has reloaded the key from the store. Undefined: nothing failed.
   */
  recovery: 'retry' | 'reload' | undefined;
  /** Why the last start failed, if the cause has a code, such as `NameTaken`; undefined after a start. */
  startProblem: { readonly reason: string; readonly message: string } | undefined;
  /** The oldest trigger that waits for a run: its lane (`lanes` in core/triggers.ts), and when it arrived, monotonic milliseconds. */
  oldestTrigger: { readonly lane: number; readonly since: number } | undefined;
  /** Whether the entry no longer exists, so that later events have no effect. */
  dropped = false;
  #lastWrite: { readonly baseVersion: string; readonly stored: StoredRecord } | undefined;

  constructor(key: ComponentKey) {
    this.key = key;
    this.keyText = keyText(key);
  }

  /** Records a trigger, unless an older one already waits. */
  noteTrigger(lane: number, since: number): void {
    this.oldestTrigger ??= { lane, since };
  }

  /** Whether a run is active. A draining run counts although its credential is revoked. */
  get hasActiveRun(): boolean {
    const { phase, stored } = this.state;
    if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
    return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
  }

  /**
   * Milliseconds until the current run reaches its maximum duration, negative after that; 0 without a run. `monotonicMs`: the current time.
   */
  remainingMs(monotonicMs: number): number {
    const { lastStart } = this.state;
    if (lastStart === undefined || !this.run) return 0;
    return lastStart + this.run.registration.maxRunMs - monotonicMs;
  }

  /** Sets the current run from the record, if memory lacks it: another process started the run, or the key was reloaded. */
  adopt(): void {
    const record = this.state.stored?.record;
    if (!record || !this.registration || !this.hasActiveRun || this.run?.seq === record.seq) return;
    this.run = new CurrentRun(record, this.registration);
  }

  /** Resets the state, except the status and what livelock detection and spacing need. The caller then reads the record from the store. */
  reset(): void {
    const { status, recentStarts, lastStart } = this.state;
    this.state = { ...initialKeyState, status, recentStarts, lastStart };
    this.run = undefined;
  }

  setStatus(status: KeyStatus | undefined): void {
    this.state = { ...this.state, status };
  }

  /** Records that `next` replaced `base` and was stored as `stored`. */
  recordWrite(base: StoredRecord, next: RunRecord, stored: StoredRecord): void {
    this.#lastWrite = { baseVersion: base.resourceVersion, stored };
    // `step` may have replaced the record meanwhile.
    if (this.state.stored?.record === next) this.state = { ...this.state, stored };
  }

  /** The version that the last write of this key stored, if it replaced `base`; otherwise `base`. */
  latestStored(base: StoredRecord): StoredRecord {
    return this.#lastWrite?.baseVersion === base.resourceVersion ? this.#lastWrite.stored : base;
  }
}

/** Data of a run that this process started. */
interface Start {
  readonly snapshot: EntrySnapshot;
  readonly token: IssuedToken;
}

/** The current run, with the registration at its start, or at its adoption. */
export class CurrentRun {
  readonly seq: number;
  readonly registration: Registration;
  /** The version of the entry at the start; undefined for an adopted run. */
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

  /** The latest token of the run; undefined for an adopted run until a heartbeat gets one. */
  get token(): IssuedToken | undefined {
    return this.#token;
  }

  /** A refreshed token whose ID is not stored in the record yet. */
  get pendingToken(): IssuedToken | undefined {
    return this.#pendingToken;
  }

  /** IDs of the tokens of the run that this process knows. */
  get credentials(): readonly string[] {
    return this.#credentials;
  }

  setPendingToken(token: IssuedToken): void {
    this.#pendingToken = token;
  }

  /** Adds a refreshed token, whose ID is stored. The previous token may still write, as long as the record allows it. */
  addToken(token: IssuedToken): void {
    this.#token = token;
    this.#pendingToken = undefined;
    this.#credentials.push(token.id);
  }
}
