/** A period during which the server could not act, epoch ms. */
export interface Outage {
  readonly fromMs: number;
  /** Absent while the period lasts. */
  toMs?: number;
}

/** Maximum delay of the server after a deadline. */
const promptMs = 1000;
/** Maximum time from the end of an outage until the server has reconciled everything. */
const comebackMs = 2000;

/**
 * The simplest model of a grant: closed before the grant, open until its deadline at the latest, and closed afterwards. Returns
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
