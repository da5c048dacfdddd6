import type { Ended } from '../../api/access/ended.ts';

/**
 * Why a request ended, if it was not denied. A vote that denies a request with a grant is an ending, too (`VoteDenied`). The ending is the reason
 * of AccessStillValid and, for a request with a grant, the code of the audit line and a label value of metrics.
 */
export type Ending =
  | 'Expired'
  | 'Deleted'
  | 'Revoked'
  | 'VoteDenied'
  | 'TemplateDeleted'
  | 'Shortened'
  | 'NoLongerAllowed'
  | 'TargetPodGone'
  | 'GrantInvalid';

/** Each ending as a clause, for conditions, Events, and audit lines. */
export const endingTexts: Readonly<Record<Ending, string>> = {
  Expired: 'the granted time has passed',
  Deleted: 'the request was deleted',
  // Names no user, because nothing in the request proves who set `spec.revoked`; the audit line of that update does.
  Revoked: 'the request was given back or revoked',
  VoteDenied: 'an approver denied the request',
  TemplateDeleted: 'its template was deleted',
  Shortened: 'an edit of the template shortened the access',
  NoLongerAllowed: 'its template no longer allows it',
  TargetPodGone: 'its pod has ended or no longer exists; create a new request',
  GrantInvalid: 'status.grant or status.ended has no valid signature of this server',
};

/**
 * `status.ended.how` for an ending: `Expired` if the granted or the shortened time has passed, or the request was not decided in time;
 * otherwise `Revoked`.
 */
export const outcomeOf = (ending: string): Exclude<Ended['how'], 'Denied'> =>
  ending === 'Expired' || ending === 'Shortened' ? 'Expired' : 'Revoked';
