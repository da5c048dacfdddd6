/** Lets one process at a time lead. `LeaseGate` in kube/ implements it with a Lease. */
export interface LeaderGate {
  /** Name of the Lease. The manager groups controllers by it, and logs show it. */
  readonly name: string;
  /**
   * Whether this process leads now. A Lease proves that this process leads only until a time on the monotonic clock, which each renewal
   * extends.
   */
  readonly leading: boolean;
  /**
   * Campaigns until `signal` aborts. Each time this process leads, `lead` runs with a signal of its own. That signal aborts with `signal`.
   * It also aborts once another process leads, or once the Lease no longer proves that this process leads. The next campaign starts only
   * after `lead` has settled.
   *
   * If `lead` settles while this process still leads, the gate releases the Lease, so that a successor takes over at once. Then `run`
   * resolves, or rejects with the error of `lead`, even if `signal` has not aborted. `run` ignores an error of `lead` after the signal of
   * `lead` aborted.
   */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/**
 * A gate whose process always leads, for controllers without a Lease, for example with `--leader-elect=false`. `run` calls `lead` at once,
 * and settles as it does.
 */
export const alwaysLeading = (name: string): LeaderGate => ({
  name,
  leading: true,
  run: (lead, signal) => lead(signal),
});
