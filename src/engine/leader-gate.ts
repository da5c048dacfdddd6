/** Lets one process at a time through. The Lease behind the real one lives in kube/. */
export interface LeaderGate {
  /** Name of the lease, for logs, metrics and health. */
  readonly name: string;
  /**
   * Campaigns until `signal` aborts. Each time this process leads, `lead` runs with a signal that aborts the moment leadership
   * can no longer be proved (by our own monotonic clock); the next campaign starts only after `lead` has settled.
   * On `signal` the lease is released once `lead` has settled, so a successor takes over at once.
   */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** For `--leader-elect=false`: always through. */
export const openGate = (name: string): LeaderGate => ({
  name,
  run: (lead, signal) => lead(signal),
});
