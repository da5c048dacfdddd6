/** Lets one process at a time lead. `LeaseGate` in kube/ does so with a Lease. */
export interface LeaderGate {
  /** Of the Lease. The manager groups controllers by it. */
  readonly name: string;
  /** A Lease proves it only until a time on the monotonic clock, which each renewal extends. */
  readonly leading: boolean;
  /**
   * Campaigns until `signal` aborts. Each time this process leads, `lead` runs; its signal aborts
   * when another process leads or the Lease proves nothing any more. If `lead` settles earlier, the
   * gate releases the Lease for a successor, and `run` settles as `lead` did. Otherwise the next
   * campaign starts once `lead` has settled.
   */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** Always leads, as with `--leader-elect=false`. `run` settles as `lead` does. */
export const alwaysLeading = (name: string): LeaderGate => ({
  name,
  leading: true,
  run: (lead, signal) => lead(signal),
});
