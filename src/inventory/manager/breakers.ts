import { backoffMs } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';

interface BreakersDeps {
  readonly clock: Clock;
  /** Calls are let through again: one, as a probe, or all. */
  readonly onChange: (component: string, how: 'probe' | 'closed') => void;
  /** It was opened, or closed. */
  readonly onState: (component: string) => void;
}

/** The circuit breakers of the endpoints, by component. */
export class Breakers {
  readonly #deps: BreakersDeps;
  readonly #breakers = new Map<string, Breaker>();
  readonly #timers = new Map<string, Cancel>();

  constructor(deps: BreakersDeps) {
    this.#deps = deps;
  }

  /** Whether a call may be made now; of an open one that says yes, this call is the probe. */
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

  /** The component has another endpoint, or none. */
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

/** The circuit breaker of an endpoint. Instants are monotonic milliseconds. */
export type Breaker =
  | {
      readonly state: 'closed';
      readonly inRow: number;
      /** The last 20 verdicts, true for failures. */
      readonly last: readonly boolean[];
    }
  | { readonly state: 'open'; readonly probeAt: number; readonly probes: number };

const maxConsecutiveFailures = 5;
const windowSize = 20;
const probe = { baseMs: 1000, capMs: 30_000 };

export const closedBreaker: Breaker = { state: 'closed', inRow: 0, last: [] };

/** Whether a call may be made; of an open one that says yes, the call is the probe: `probed` has to follow. */
export const mayCall = (breaker: Breaker, at: number): boolean => breaker.state === 'closed' || at >= breaker.probeAt;

/** The next probe comes later, whatever becomes of this one. */
export function probed(breaker: Breaker, at: number): Breaker {
  if (breaker.state === 'closed') return breaker;
  return { ...breaker, probeAt: at + probeDelayMs(breaker.probes), probes: breaker.probes + 1 };
}

/** After a call was answered, or failed before the component had it. `retryAfterMs`: no probe before. */
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

/** 1, 2, 4 … 30 s: one endpoint, one probe, so nothing to spread. */
const probeDelayMs = (attempt: number): number => backoffMs({ ...probe, attempt, jitter: 'none' });
