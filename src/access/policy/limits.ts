import type { Violation } from './policy.ts';

/** How many grants may be open at once; 0 means any number. */
export interface Limits {
  readonly perUser: number;
  readonly perNamespace: number;
}

/** @testing */
export const noLimits: Limits = { perUser: 0, perNamespace: 0 };

/** On whose account one more grant would go. */
export interface Account {
  readonly user: string;
  readonly namespace: string;
  readonly template: { readonly uid: string; readonly name: string; readonly maxGrants: number | undefined };
}

/** One limit that a request comes under, and how far it is used up by others. */
export interface LimitUse {
  readonly scope: 'user' | 'template' | 'namespace';
  /** The name of the user, template or namespace. */
  readonly name: string;
  readonly limit: number;
  /** Grants that are open or about to be. */
  readonly open: number;
  /** When the last of those that are one too many ends by itself, as RFC 3339; undefined while there is room. */
  readonly freeAt?: string;
}

/** The first limit that has no room for one more. */
export const fullLimit = (uses: readonly LimitUse[]): LimitUse | undefined =>
  uses.find(({ open, limit }) => open >= limit);

/** Whether one more grant fits. */
export function limitViolation(uses: readonly LimitUse[]): Violation | undefined {
  const full = fullLimit(uses);
  if (!full) return undefined;
  const { scope, name, open, limit, freeAt } = full;
  const until = freeAt === undefined ? '' : `; the next place is free at ${freeAt} or when access is given back`;
  return {
    code: 'LimitReached',
    message: `${scope} ${JSON.stringify(name)} has ${count(open)}, and the limit is ${limit}${until}`,
    status: 403,
  };
}

const count = (open: number): string => (open === 1 ? '1 open grant' : `${open} open grants`);
