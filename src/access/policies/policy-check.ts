import type { Violation } from '../policy/policy.ts';

/** Whether the admission policies certify what other clients wrote. */
export interface PolicyCheck {
  /**
   * As `certify`, by what the leader found last, to spare work: certified also if it has not looked
   * yet. Open nothing by it.
   */
  assess(createdAtMs: number): Certified;
  /** The leader has not looked yet in its term. */
  readonly isFirstLook: boolean;
  /**
   * By the creation time of the object (epoch ms), and by what the API server has now. Call it
   * after all that the act depends on was read. Rejects if a call fails.
   */
  certify(createdAtMs: number, signal: AbortSignal): Promise<Certified>;
  /** As `certify`, of a version of a template about which no leader has a verdict. */
  certifyVersion(template: TemplateVersion, signal: AbortSignal): Promise<Certified>;
}

export interface TemplateVersion {
  readonly uid: string;
  readonly generation: number;
  /** Epoch ms. */
  readonly createdAtMs: number;
  readonly spec: { readonly author?: unknown };
}

/** `gap`: not proven now; ask again after `policyRetryMs`. `uncertified` is final. */
export type Certified = 'certified' | 'uncertified' | 'gap';

export const policyRetryMs = 2000;
/** Until the leader has looked. */
export const firstLookMs = 200;

const uncertified = (what: string, remedy: string): Violation => ({
  code: 'PoliciesMissing',
  message: `${what} was created before the admission policies of drawbridge were proven to be in force, so nothing certifies who created it; ${remedy}`,
  status: 403,
});

export const requestUncertified = uncertified('the request', 'create a new request');
export const voteUncertified = uncertified('the vote', 'vote again');

/** Of acts that wait for the end of a gap. */
export const policiesAwaited =
  'waiting until the leader has proven that the admission policies are in force; ask an administrator to read /readyz of the leader';
