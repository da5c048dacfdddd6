import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { freshKey, type KeyState, type KeyStatus } from '../core/step.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { RunToken } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { EntrySnapshot } from './entry-snapshot.ts';

/**
 * What this process remembers of a key while it leads. Changed by its loop, and by what that carries out, one thing after the other.
 * There is one for each component of each entry, so that it has to be small.
 */
export class KeyMemory {
  readonly key: ComponentKey;
  readonly text: string;
  /** As `step` left it. Only what was stored of it and what is shown of it are put in besides. */
  state: KeyState = freshKey;
  /** The last one that there was: whoever takes it away leaves runs behind. */
  registration: Registration | undefined;
  run: CurrentRun | undefined;
  /** The record that the state has was refused by the API server: in the store still lies the one before. */
  unstored = false;
  /**
   * `broken`: it could not be handled, and is to be tried again. `lost`: nor is it known how much of what followed was carried out, so
   * that events say nothing until it is looked at anew.
   */
  recovery: 'retry' | 'reload' | undefined;
  /** The first trigger that is still to be answered: its lane, and when it came, in monotonic milliseconds. */
  oldestTrigger: { readonly lane: number; readonly since: number } | undefined;
  /** Nobody looks after it any more. */
  dropped = false;
  #lastWrite: { readonly from: string; readonly stored: StoredRecord } | undefined;

  constructor(key: ComponentKey) {
    this.key = key;
    this.text = keyText(key);
  }

  noteTrigger(lane: number, since: number): void {
    this.oldestTrigger ??= { lane, since };
  }

  /** Whether a run of it is on, as far as the fence is concerned or not. */
  get hasActiveRun(): boolean {
    const { phase, stored } = this.state;
    if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
    return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
  }

  /** Milliseconds that the run that is on may still take; `monotonicMs` is the present. */
  remainingMs(monotonicMs: number): number {
    const { lastStart } = this.state;
    if (lastStart === undefined || !this.run) return 0;
    return lastStart + this.run.registration.maxRunMs - monotonicMs;
  }

  /** Goes on with the run that its record says is on, whoever started it. */
  adopt(): void {
    const record = this.state.stored?.record;
    if (!record || !this.registration || !this.hasActiveRun || this.run?.seq === record.seq) return;
    this.run = new CurrentRun(record, this.registration);
  }

  /** Everything that can be found out anew, or that may be wrong. */
  reset(): void {
    const { status, recentStarts, lastStart } = this.state;
    this.state = { ...freshKey, status, recentStarts, lastStart };
    this.run = undefined;
  }

  setStatus(status: KeyStatus | undefined): void {
    this.state = { ...this.state, status };
  }

  /** In place of `base`, `next` has been stored: as `stored`. */
  recordWrite(base: StoredRecord, next: RunRecord, stored: StoredRecord): void {
    this.#lastWrite = { from: base.resourceVersion, stored };
    // `step` may have gone on from there.
    if (this.state.stored?.record === next) this.state = { ...this.state, stored };
  }

  /** What lies in the store since this very key replaced `base`. */
  latestStored(base: StoredRecord): StoredRecord {
    return this.#lastWrite?.from === base.resourceVersion ? this.#lastWrite.stored : base;
  }
}

/** What this process started a run with. */
interface Start {
  readonly snapshot: EntrySnapshot;
  readonly token: RunToken;
}

/** The run that is on. Its registration is the one that it was started with. */
export class CurrentRun {
  readonly seq: number;
  readonly registration: Registration;
  /** The version of the entry that it was started with; undefined when another process started it. */
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

  /** The one that it has now; undefined when another process gave it out. */
  get token(): RunToken | undefined {
    return this.#token;
  }

  /** One that it is to have once the record that names it is stored. */
  get pendingToken(): RunToken | undefined {
    return this.#pendingToken;
  }

  /** The ids of all tokens that it has had. */
  get credentials(): readonly string[] {
    return this.#credentials;
  }

  setPendingToken(token: RunToken): void {
    this.#pendingToken = token;
  }

  /** It has this one besides the one before. */
  addToken(token: RunToken): void {
    this.#token = token;
    this.#pendingToken = undefined;
    this.#credentials.push(token.id);
  }
}
