import type { PolicyCheck } from '../../src/access/policies/policy-check.ts';

/** For tests that do not remove any. */
export const policiesInForce: PolicyCheck = {
  check: () => Promise.resolve(undefined),
  known: () => undefined,
  isInstalling: false,
};
