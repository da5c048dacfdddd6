import type { Ended } from './ended.ts';

/**
 * Why a request ended, if it was not denied. It is also the reason of AccessStillValid, the code of
 * the audit line, and a metric label. With a grant, a denial by vote is an ending.
 */
export type Ending =
  | 'Expired'
  | 'Deleted'
  | 'Revoked'
  | 'VoteDenied'
  | 'TemplateDeleted'
  | 'Shortened'
  | 'NoLongerAllowed'
  | 'TargetPodGone';

/** Clauses for conditions, Events, and audit lines. */
export const endingTexts: Readonly<Record<Ending, string>> = {
  Expired: 'the granted time has passed',
  Deleted: 'the request was deleted',
  // Names no user: only the audit line of the update proves who set `spec.revoked`.
  Revoked: 'the request was revoked',
  VoteDenied: 'an approver denied the request',
  TemplateDeleted: 'its template was deleted',
  Shortened: 'an edit of the template shortened the access',
  NoLongerAllowed: 'its template no longer allows it',
  TargetPodGone: 'its pod has ended or no longer exists; create a new request',
};

/** `Expired` if a time has passed (granted, shortened, or for a decision), else `Revoked`. */
export const outcomeOf = (ending: string): Exclude<Ended['how'], 'Denied'> =>
  ending === 'Expired' || ending === 'Shortened' ? 'Expired' : 'Revoked';
