import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import { freshKey, type KeyState, type Row } from '../core/step.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { Registration } from '../registration.ts';
import { CurrentRun } from './current-run.ts';

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
  trouble: 'broken' | 'lost' | undefined;
  /** The first trigger that is still to be answered: its lane, and when it came, in monotonic milliseconds. */
  wanted: { readonly lane: number; readonly since: number } | undefined;
  /** Nobody looks after it any more. */
  dropped = false;
  #written: { readonly from: string; readonly stored: StoredRecord } | undefined;

  constructor(key: ComponentKey) {
    this.key = key;
    this.text = keyText(key);
  }

  want(lane: number, since: number): void {
    this.wanted ??= { lane, since };
  }

  /** Whether a run of it is on, as far as the fence is concerned or not. */
  get isAtWork(): boolean {
    const { phase, stored } = this.state;
    if (phase === 'starting' || phase === 'running' || phase === 'applying') return true;
    return phase === 'draining' && stored !== undefined && stored.record.phase !== 'Idle';
  }

  /** Milliseconds that the run that is on may still take; `monotonicMs` is the present. */
  leftMs(monotonicMs: number): number {
    const { lastStart } = this.state;
    if (lastStart === undefined || !this.run) return 0;
    return lastStart + this.run.registration.maxRunMs - monotonicMs;
  }

  /** Goes on with the run that its record says is on, whoever started it. */
  adopt(): void {
    const record = this.state.stored?.record;
    if (!record || !this.registration || !this.isAtWork || this.run?.seq === record.seq) return;
    this.run = new CurrentRun(record, this.registration);
  }

  /** Everything that can be found out anew, or that may be wrong. */
  forget(): void {
    const { row, recent, lastStart } = this.state;
    this.state = { ...freshKey, row, recent, lastStart };
    this.run = undefined;
  }

  show(row: Row | undefined): void {
    this.state = { ...this.state, row };
  }

  /** In place of `base`, `next` has been stored: as `stored`. */
  wrote(base: StoredRecord, next: RunRecord, stored: StoredRecord): void {
    this.#written = { from: base.resourceVersion, stored };
    // `step` may have gone on from there.
    if (this.state.stored?.record === next) this.state = { ...this.state, stored };
  }

  /** What lies in the store since this very key replaced `base`. */
  latest(base: StoredRecord): StoredRecord {
    return this.#written?.from === base.resourceVersion ? this.#written.stored : base;
  }
}
