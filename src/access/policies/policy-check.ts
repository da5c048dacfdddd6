import type { Violation } from '../policy/policy.ts';

/** What an act asks before it opens access, or relies on what it has read for good. */
export interface PolicyCheck {
  /**
   * The violation if the policies were not in force without a pause. Call it after all that the act
   * depends on was read: it reads the policies live, so it sees each change that let a forgery in.
   * Rejects with CodedError `PoliciesUnproven` until the leader knows.
   */
  check(signal: AbortSignal): Promise<Violation | undefined>;
  /** As `check`, by what the leader knows, without a call. Throws `PoliciesUnproven`. */
  known(): Violation | undefined;
  /** Until the first record: what exists already is judged once the policies are in force. */
  readonly isInstalling: boolean;
}

export const policiesMissing = (problem: string): Violation => ({
  code: 'PoliciesMissing',
  message: `the admission policies that prove who asked were not in force: ${problem}; once an administrator has corrected that, create a new request`,
  status: 403,
});
