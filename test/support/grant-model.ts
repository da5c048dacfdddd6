/** A period during which the server could not act, epoch ms. */
export interface Outage {
  readonly fromMs: number;
  /** Absent while the period lasts. */
  toMs?: number;
}

/** How long the server may take to act on an end that it knows. */
const promptMs = 1000;
/** How long the server may take after its return to reconcile everything. */
const comebackMs = 2000;

/**
 * The smallest model of a grant: closed until it is granted, open until its deadline at the latest, and closed from then on. Returns
 * the last instant (epoch ms) at which access may be open; -Infinity without a grant. `slowMs` is the extra delay of a busy machine,
 * because the server is not responsible for a starved control plane.
 */
export function openUntil(expiresAtMs: number | undefined, outages: readonly Outage[], slowMs: number): number {
  if (expiresAtMs === undefined) return Number.NEGATIVE_INFINITY;
  let last = expiresAtMs + promptMs + slowMs;
  for (const { fromMs, toMs } of outages) {
    if (fromMs <= last) last = Math.max(last, (toMs ?? Number.POSITIVE_INFINITY) + comebackMs + slowMs);
  }
  return last;
}
