import { lanes, reasonText, type Trigger, triggerReasons } from '../lanes.ts';
import { spacingOf } from '../livelock.ts';
import { withTriggers } from '../pending.ts';
import { rowOf, sameRow } from '../row.ts';
import type { RunRecord, StoredRecord } from '../run-record.ts';
import type { Effect, Inputs, KeyState, StepContext } from '../step.ts';

/** One event being worked out: what the state becomes and what is to be done. */
export class Turn {
  state: KeyState;
  readonly effects: Effect[] = [];
  readonly context: StepContext;

  constructor(state: KeyState, context: StepContext) {
    this.state = state;
    this.context = context;
  }

  become(change: Partial<KeyState>): void {
    this.state = { ...this.state, ...change };
  }

  do(effect: Effect): void {
    this.effects.push(effect);
  }

  /** Writes the record; from here on the state has it as it is to be. */
  store(next: RunRecord, base: StoredRecord): void {
    this.do({ kind: 'store', next, base });
    this.become({ stored: { record: next, resourceVersion: base.resourceVersion } });
  }

  want(...triggers: readonly Trigger[]): void {
    if (triggers.length > 0) this.become({ pending: withTriggers(this.state.pending, triggers, this.context) });
  }

  /** No run is on: the key waits for its turn, its time, or an event. */
  settle({ mayRun }: Pick<Inputs, 'mayRun'>): void {
    const { pending, wake } = this.state;
    const isQueued = pending !== undefined && mayRun.may !== 'no';
    this.become({ phase: isQueued ? 'queued' : 'idle' });
    if (isQueued && (!wake || pending.dueAt <= wake.at)) {
      this.enqueueAt(pending.dueAt, pending.lane, pending.triggers.map(reasonText));
    } else if (wake) {
      this.enqueueAt(wake.at, lanes.time, [wake.reason]);
    }
  }

  /** The run that is on counts as lost then. */
  awaitLease(): void {
    const { leaseAt } = this.state;
    if (leaseAt !== undefined) this.enqueueAt(leaseAt, lanes.time, [triggerReasons.leaseOver]);
  }

  /** At that monotonic instant, but not sooner after the last start than the key may run. */
  enqueueAt(at: number, lane: Extract<Effect, { kind: 'enqueue' }>['lane'], reasons: readonly string[]): void {
    const { monotonicMs } = this.context;
    const delayMs = Math.max(0, at - monotonicMs, this.earliestStart() - monotonicMs);
    this.do({ kind: 'enqueue', delayMs, lane, reasons });
  }

  /** Monotonic milliseconds. */
  earliestStart(): number {
    const { lastStart, recent } = this.state;
    if (lastStart === undefined) return Number.NEGATIVE_INFINITY;
    return lastStart + spacingOf(recent, this.context.monotonicMs);
  }

  /** The row of the status, when it is another than before, or a run has ended. */
  tell(inputs: Inputs, hasEnded = false): void {
    const row = rowOf(this.state, inputs);
    if (!hasEnded && sameRow(row, this.state.row)) return;
    this.become({ row });
    this.do({ kind: 'tell', row });
  }
}
