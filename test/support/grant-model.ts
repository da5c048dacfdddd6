/** A time in which the server could not act, epoch ms. */
export interface Outage {
  readonly fromMs: number;
  /** Absent while it lasts. */
  toMs?: number;
}

/** What the server is given to act on an end that it knows of. */
const promptMs = 1000;
/** What it is given from its return on to have looked at everything. */
const comebackMs = 2000;

/**
 * The life of a grant, as small as it can be told: closed until it is granted, open until its deadline at the latest, closed from then
 * on. Returns the last instant (epoch ms) at which access may still be seen open; -Infinity when there is no grant. `slowMs` is how
 * much longer than usual the machine takes: a control plane that starves is not the server's doing.
 */
export function openUntil(expiresAtMs: number | undefined, outages: readonly Outage[], slowMs: number): number {
  if (expiresAtMs === undefined) return Number.NEGATIVE_INFINITY;
  let last = expiresAtMs + promptMs + slowMs;
  for (const { fromMs, toMs } of outages) {
    if (fromMs <= last) last = Math.max(last, (toMs ?? Number.POSITIVE_INFINITY) + comebackMs + slowMs);
  }
  return last;
}
