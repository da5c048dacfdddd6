import type { Clock } from '../../kit/clock.ts';
import type { Resolve } from '../destination.ts';
import type { Answer, Message, Sink } from '../sink.ts';

/** One call to a sink. */
export interface Delivery {
  readonly sink: Sink;
  readonly message: Message;
  readonly resolve: Resolve;
  readonly clock: Clock;
  /** Aborts at the time limit, or with the caller's signal. */
  readonly signal: AbortSignal;
}

/** Rejects if there is no answer. `said` may still contain credentials and control characters. */
export type Medium = (delivery: Delivery) => Promise<Answer>;
