import type { Violation } from './policy.ts';

/** Open grants; 0 means no limit. */
export interface Limits {
  readonly perUser: number;
  readonly perNamespace: number;
}

/** @testing */
export const noLimits: Limits = { perUser: 0, perNamespace: 0 };

/** A new grant counts against the limit of each. */
export interface Account {
  readonly user: string;
  readonly namespace: string;
  readonly template: { readonly uid: string; readonly name: string; readonly maxGrants: number | undefined };
}

export interface LimitUse {
  readonly scope: 'user' | 'template' | 'namespace';
  readonly name: string;
  readonly limit: number;
  /** Open, ending, and reserved grants. */
  readonly open: number;
  /** RFC 3339: when enough grants have expired for a new one. */
  readonly freeAt?: string;
  /** A holder can still extend a grant that expires by `freeAt`. */
  readonly canMove?: boolean;
}

export const fullLimit = (uses: readonly LimitUse[]): LimitUse | undefined =>
  uses.find(({ open, limit }) => open >= limit);

export function limitViolation(uses: readonly LimitUse[]): Violation | undefined {
  const full = fullLimit(uses);
  if (!full) return undefined;
  const { scope, name, open, limit, freeAt, canMove } = full;
  const longer = canMove ? ', or longer if a holder extends access' : '';
  const until = freeAt === undefined ? '' : `; wait until ${freeAt}${longer}, or revoke an open request`;
  return {
    code: 'LimitReached',
    message: `${scope} ${JSON.stringify(name)} has ${count(open)}, and the limit is ${limit}${until}`,
    status: 403,
  };
}

const count = (open: number): string => (open === 1 ? '1 open grant' : `${open} open grants`);
