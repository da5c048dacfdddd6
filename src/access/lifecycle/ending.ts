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

/** The same for people, as a clause. */
export const endingTexts: Readonly<Record<Ending, string>> = {
  Expired: 'the time granted is over',
  Deleted: 'the request was deleted',
  Revoked: 'it was given back',
  TemplateDeleted: 'its template was deleted',
  Shortened: 'the maxDuration of its template was shortened',
  NoLongerAllowed: 'its template does not allow it any more',
  TargetPodGone: 'its pod is gone; make a new request for another one',
  GrantInvalid: 'its grant was not written by this server',
};
