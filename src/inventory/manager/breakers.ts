import { backoffMs } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';

interface BreakersDeps {
  readonly clock: Clock;
  /** Called when the breaker admits calls again: one probe, or all calls. */
  readonly onChange: (component: string, how: 'probe' | 'closed') => void;
  /** Called when the breaker opens or closes. */
  readonly onState: (component: string) => void;
}

/** Circuit breakers of the endpoints, by component. */
export class Breakers {
  readonly #deps: BreakersDeps;
  readonly #breakers = new Map<string, Breaker>();
  readonly #timers = new Map<string, Cancel>();

  constructor(deps: BreakersDeps) {
    this.#deps = deps;
  }

  /** Whether a call is admitted now. If an open breaker admits it, the call is the probe. */
  admit(component: string): boolean {
    const breaker = this.#breakers.get(component);
    if (!breaker || breaker.state === 'closed') return true;
    const now = this.#deps.clock.monotonic();
    if (!mayCall(breaker, now)) return false;
    this.#set(component, probed(breaker, now));
    return true;
  }

  record(component: string, verdict: 'answered' | 'failed', retryAfterMs: number | undefined): void {
    const { clock, onChange, onState } = this.#deps;
    const before = this.#breakers.get(component) ?? closedBreaker;
    const after = afterCall(before, verdict, clock.monotonic(), retryAfterMs);
    this.#set(component, after);
    if (before.state === after.state) return;
    onState(component);
    if (after.state === 'closed') onChange(component, 'closed');
  }

  isOpen(component: string): boolean {
    return this.#breakers.get(component)?.state === 'open';
  }

  /** Resets the breaker after the endpoint changed or was removed. */
  forget(component: string): void {
    const wasOpen = this.isOpen(component);
    this.#timers.get(component)?.();
    this.#timers.delete(component);
    this.#breakers.delete(component);
    if (wasOpen) this.#deps.onChange(component, 'closed');
  }

  states(): { component: string; state: number }[] {
    const now = this.#deps.clock.monotonic();
    return [...this.#breakers].map(([component, breaker]) => ({
      component,
      state: breaker.state === 'closed' ? 0 : mayCall(breaker, now) ? 1 : 2,
    }));
  }

  clear(): void {
    for (const component of [...this.#breakers.keys()]) this.forget(component);
  }

  #set(component: string, breaker: Breaker): void {
    const { clock, onChange } = this.#deps;
    this.#breakers.set(component, breaker);
    this.#timers.get(component)?.();
    this.#timers.delete(component);
    if (breaker.state === 'closed') return;
    const cancel = clock.schedule(breaker.probeAt - clock.monotonic(), () => {
      this.#timers.delete(component);
      onChange(component, 'probe');
    });
    this.#timers.set(component, cancel);
  }
}

/** State of the circuit breaker of an endpoint. Instants are monotonic milliseconds. */
export type Breaker =
  | {
      readonly state: 'closed';
      readonly inRow: number;
      /** The last 20 results, true for failures. */
      readonly last: readonly boolean[];
    }
  | { readonly state: 'open'; readonly probeAt: number; readonly probes: number };

const maxConsecutiveFailures = 5;
const windowSize = 20;
const probe = { baseMs: 1000, capMs: 30_000 };

export const closedBreaker: Breaker = { state: 'closed', inRow: 0, last: [] };

/** Whether a call is admitted. If an open breaker admits it, the call is the probe, and the caller must apply `probed`. */
export const mayCall = (breaker: Breaker, at: number): boolean => breaker.state === 'closed' || at >= breaker.probeAt;

/** Schedules the next probe, independent of the result of this one. */
export function probed(breaker: Breaker, at: number): Breaker {
  if (breaker.state === 'closed') return breaker;
  return { ...breaker, probeAt: at + probeDelayMs(breaker.probes), probes: breaker.probes + 1 };
}

/** State after a call was answered or did not reach the component. No probe follows before `retryAfterMs`. */
export function afterCall(
  breaker: Breaker,
  verdict: 'answered' | 'failed',
  at: number,
  retryAfterMs: number | undefined,
): Breaker {
  if (breaker.state === 'open') {
    if (verdict === 'answered') return closedBreaker;
    return { ...breaker, probeAt: Math.max(breaker.probeAt, at + Math.min(retryAfterMs ?? 0, probe.capMs)) };
  }
  const last = [...breaker.last, verdict === 'failed'].slice(-windowSize);
  const consecutiveFailures = verdict === 'failed' ? breaker.inRow + 1 : 0;
  const halfFailed = last.length === windowSize && last.filter(Boolean).length * 2 >= windowSize;
  if (consecutiveFailures < maxConsecutiveFailures && !(halfFailed && verdict === 'failed'))
    return { state: 'closed', inRow: consecutiveFailures, last };
  const delayMs = Math.max(probeDelayMs(0), Math.min(retryAfterMs ?? 0, probe.capMs));
  return { state: 'open', probeAt: at + delayMs, probes: 1 };
}

/** 1, 2, 4 … 30 s. One endpoint has one probe at a time, so jitter is unnecessary. */
const probeDelayMs = (attempt: number): number => backoffMs({ ...probe, attempt, jitter: 'none' });
