import type { Cancel, Clock } from '../../kit/clock.ts';
import { afterCall, type Breaker, closedBreaker, mayCall, probed } from '../core/breaker.ts';

export interface BreakersDeps {
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

  tell(component: string, verdict: 'answered' | 'failed', retryAfterMs: number | undefined): void {
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
