/** Lets one process at a time lead. `LeaseGate` in kube/ implements it with a Lease. */
export interface LeaderGate {
  /** Name of the Lease, for logs, metrics, and health. */
  readonly name: string;
  /** Whether this process leads now. A Lease proves that by the monotonic clock. */
  readonly leading: boolean;
  /**
   * Campaigns until `signal` aborts. Each time this process leads, `lead` runs with a signal of its own. That signal aborts with `signal`. It
   * also aborts once another process leads, or once the monotonic clock no longer proves that this one does. The next campaign starts only
   * after `lead` has settled.
   *
   * Once `lead` settles while the process still leads, releases the Lease, so that a successor takes over at once. Then resolves, or
   * rejects with the error of `lead`, even if `signal` has not aborted. Ignores errors of `lead` after its signal aborted.
   */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** For controllers without a Lease, or `--leader-elect=false`: this process always leads. `run` settles as `lead` does. */
export const openGate = (name: string): LeaderGate => ({
  name,
  leading: true,
  run: (lead, signal) => lead(signal),
});
