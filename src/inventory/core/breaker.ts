import { backoffMs } from '../../kit/backoff.ts';

/** The circuit breaker of an endpoint. Instants are monotonic milliseconds. */
export type Breaker =
  | {
      readonly state: 'closed';
      readonly inRow: number;
      /** The last 20 verdicts, true for failures. */
      readonly last: readonly boolean[];
    }
  | { readonly state: 'open'; readonly probeAt: number; readonly probes: number };

const inRowLimit = 5;
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
  const inRow = verdict === 'failed' ? breaker.inRow + 1 : 0;
  const isHalf = last.length === windowSize && last.filter(Boolean).length * 2 >= windowSize;
  if (inRow < inRowLimit && !(isHalf && verdict === 'failed')) return { state: 'closed', inRow, last };
  const delayMs = Math.max(probeDelayMs(0), Math.min(retryAfterMs ?? 0, probe.capMs));
  return { state: 'open', probeAt: at + delayMs, probes: 1 };
}

/** 1, 2, 4 … 30 s: one endpoint, one probe, so nothing to spread. */
const probeDelayMs = (attempt: number): number => backoffMs({ ...probe, attempt, random: () => 1 });
