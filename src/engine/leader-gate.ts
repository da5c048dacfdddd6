/** Lets one process at a time lead. `LeaseGate` in kube/ implements it with a Lease. */
export interface LeaderGate {
  /** Name of the Lease, for logs, metrics, and health. */
  readonly name: string;
  /**
   * Campaigns until `signal` aborts. Each time this process leads, `lead` runs with a signal. The signal aborts the moment leadership can
   * no longer be proved, by the monotonic clock of the process. The next campaign starts only after `lead` has settled.
   * When `signal` aborts, releases the Lease once `lead` has settled, so that a successor takes over at once.
   */
  run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** For `--leader-elect=false`: this process always leads. */
export const openGate = (name: string): LeaderGate => ({
  name,
  run: (lead, signal) => lead(signal),
});
