import { backoffMs } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import type { EndpointProblem } from '../core/memory.ts';

export interface OpenedBreaker extends EndpointProblem {
  readonly atMs: number;
}

interface BreakersDeps {
  readonly clock: Clock;
  /** `probe`: one call is admitted again; `closed`: all calls. */
  readonly onAdmitting: (component: string, how: 'probe' | 'closed') => void;
  /** After a call opened or closed a breaker, not after `forget`. */
  readonly onStateChange: (component: string) => void;
}

export class Breakers {
  readonly #deps: BreakersDeps;
  readonly #breakers = new Map<string, Breaker>();
  readonly #timers = new Map<string, Cancel>();
  readonly #problems = new Map<string, OpenedBreaker>();

  constructor(deps: BreakersDeps) {
    this.#deps = deps;
  }

  /** If the breaker is open, the admitted call is the probe. */
  admit(component: string): boolean {
    const breaker = this.#breakers.get(component);
    if (!breaker || breaker.state === 'closed') return true;
    const now = this.#deps.clock.monotonic();
    if (!mayCall(breaker, now)) return false;
    this.#set(component, probed(breaker, now));
    return true;
  }

  /** `problem`: why the call failed. */
  record(
    component: string,
    verdict: 'answered' | 'failed',
    retryAfterMs: number | undefined,
    problem?: EndpointProblem,
  ): void {
    const { clock, onAdmitting, onStateChange } = this.#deps;
    const before = this.#breakers.get(component) ?? closedBreaker;
    const after = afterCall(before, verdict, clock.monotonic(), retryAfterMs);
    this.#set(component, after);
    if (before.state === after.state) return;
    if (after.state === 'open' && problem !== undefined)
      this.#problems.set(component, { ...problem, atMs: clock.now() });
    else this.#problems.delete(component);
    onStateChange(component);
    if (after.state === 'closed') onAdmitting(component, 'closed');
  }

  /** Milliseconds until the next probe if a call fails now; undefined if it stays closed. */
  probeDelayMs(component: string, retryAfterMs: number | undefined): number | undefined {
    const now = this.#deps.clock.monotonic();
    const after = afterCall(this.#breakers.get(component) ?? closedBreaker, 'failed', now, retryAfterMs);
    return after.state === 'open' ? after.probeAt - now : undefined;
  }

  /** The call that opened the breaker. Later failures do not replace it, so they cost no write. */
  problem(component: string): OpenedBreaker | undefined {
    return this.#problems.get(component);
  }

  isOpen(component: string): boolean {
    return this.#breakers.get(component)?.state === 'open';
  }

  /** For a changed endpoint or registration, or a new leader. Calls `onAdmitting` if open. */
  forget(component: string): void {
    const wasOpen = this.isOpen(component);
    this.#timers.get(component)?.();
    this.#timers.delete(component);
    this.#breakers.delete(component);
    this.#problems.delete(component);
    if (wasOpen) this.#deps.onAdmitting(component, 'closed');
  }

  /** 0 closed, 1 half open (a probe is due), 2 open. */
  states(): { component: string; state: number }[] {
    const now = this.#deps.clock.monotonic();
    const metricValue = (breaker: Breaker): number => {
      if (breaker.state === 'closed') return 0;
      return mayCall(breaker, now) ? 1 : 2;
    };
    return [...this.#breakers].map(([component, breaker]) => ({ component, state: metricValue(breaker) }));
  }

  forgetUnregistered(isRegistered: (component: string) => boolean): void {
    for (const component of [...this.#breakers.keys()]) if (!isRegistered(component)) this.forget(component);
  }

  clear(): void {
    this.forgetUnregistered(() => false);
  }

  #set(component: string, breaker: Breaker): void {
    const { clock, onAdmitting } = this.#deps;
    this.#breakers.set(component, breaker);
    this.#timers.get(component)?.();
    this.#timers.delete(component);
    if (breaker.state === 'closed') return;
    const cancel = clock.schedule(breaker.probeAt - clock.monotonic(), () => {
      this.#timers.delete(component);
      onAdmitting(component, 'probe');
    });
    this.#timers.set(component, cancel);
  }
}

/** Instants are monotonic milliseconds. */
export type Breaker =
  | {
      readonly state: 'closed';
      readonly consecutiveFailures: number;
      /** The last 20 results, true for failures. */
      readonly lastResults: readonly boolean[];
    }
  | {
      readonly state: 'open';
      readonly probeAt: number;
      /** Probes scheduled since the breaker opened. */
      readonly probes: number;
    };

/** A closed breaker opens after this many failures in a row. */
const maxConsecutiveFailures = 5;
/** It also opens after a failure if at least half of this many last calls failed. */
const windowSize = 20;
const probeBackoff = { baseMs: 1000, capMs: 30_000 };

export const closedBreaker: Breaker = { state: 'closed', consecutiveFailures: 0, lastResults: [] };

/** If the breaker is open, the call is the probe, and the caller must apply `probed`. */
export const mayCall = (breaker: Breaker, at: number): boolean => breaker.state === 'closed' || at >= breaker.probeAt;

/** The next probe does not wait for the result of this one. */
export function probed(breaker: Breaker, at: number): Breaker {
  if (breaker.state === 'closed') return breaker;
  return { ...breaker, probeAt: at + probeDelayMs(breaker.probes), probes: breaker.probes + 1 };
}

/** `failed`: the call was not accepted. The next probe waits for Retry-After, up to 30 s. */
export function afterCall(
  breaker: Breaker,
  verdict: 'answered' | 'failed',
  at: number,
  retryAfterMs: number | undefined,
): Breaker {
  if (breaker.state === 'open') {
    if (verdict === 'answered') return closedBreaker;
    return { ...breaker, probeAt: Math.max(breaker.probeAt, at + Math.min(retryAfterMs ?? 0, probeBackoff.capMs)) };
  }
  const lastResults = [...breaker.lastResults, verdict === 'failed'].slice(-windowSize);
  const consecutiveFailures = verdict === 'failed' ? breaker.consecutiveFailures + 1 : 0;
  const halfFailed = lastResults.length === windowSize && lastResults.filter(Boolean).length * 2 >= windowSize;
  if (consecutiveFailures < maxConsecutiveFailures && !(halfFailed && verdict === 'failed'))
    return { state: 'closed', consecutiveFailures, lastResults };
  const delayMs = Math.max(probeDelayMs(0), Math.min(retryAfterMs ?? 0, probeBackoff.capMs));
  return { state: 'open', probeAt: at + delayMs, probes: 1 };
}

/** Without jitter, because each endpoint gets one probe per delay. */
const probeDelayMs = (attempt: number): number => backoffMs({ ...probeBackoff, attempt, jitter: 'none' });
