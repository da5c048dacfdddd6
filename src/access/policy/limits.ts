import type { Violation } from './policy.ts';

/** Maximum numbers of open grants of a user, and in a namespace; 0 means no limit. */
export interface Limits {
  readonly perUser: number;
  readonly perNamespace: number;
}

/** @testing */
export const noLimits: Limits = { perUser: 0, perNamespace: 0 };

/** The user, the namespace, and the template of a new grant: it counts against the limit of each. */
export interface Account {
  readonly user: string;
  readonly namespace: string;
  readonly template: { readonly uid: string; readonly name: string; readonly maxGrants: number | undefined };
}

/** One limit that applies to a request, and how much of it other requests use. */
export interface LimitUse {
  readonly scope: 'user' | 'template' | 'namespace';
  /** The name of the user, template, or namespace. */
  readonly name: string;
  readonly limit: number;
  /** Number of grants that count: open, ending, and reserved ones. */
  readonly open: number;
  /** Time, as RFC 3339, at which enough grants have expired for a new one; undefined if the limit is not used up. */
  readonly freeAt?: string;
  /** Whether the holder of a grant that expires by `freeAt` can still extend it, so that `freeAt` may move. */
  readonly canMove?: boolean;
}

/** The first limit that is used up; undefined if none is. */
export const fullLimit = (uses: readonly LimitUse[]): LimitUse | undefined =>
  uses.find(({ open, limit }) => open >= limit);

/** `LimitReached` if a limit is used up. */
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
