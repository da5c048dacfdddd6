/** Why a grant ended. */
export type Ending =
  | 'Expired'
  | 'Deleted'
  | 'Revoked'
  | 'TemplateDeleted'
  | 'Shortened'
  | 'NoLongerAllowed'
  | 'TargetPodGone'
  | 'GrantInvalid';

/** Each ending as a clause for Events and audit lines. */
export const endingTexts: Readonly<Record<Ending, string>> = {
  Expired: 'the granted time has passed',
  Deleted: 'the request was deleted',
  Revoked: 'the request was revoked',
  TemplateDeleted: 'its template was deleted',
  Shortened: 'the maxDuration of its template was shortened',
  NoLongerAllowed: 'its template no longer allows it',
  TargetPodGone: 'its pod no longer exists; create a new request for another pod',
  GrantInvalid: 'its grant was not written by this server',
};
