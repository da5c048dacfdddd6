import { quote } from '../kit/errors.ts';
import type { Review, UserInfo } from './codec.ts';
import type { Denial } from './decision.ts';

/** Groups of a caller, and separately, keys and values of its `extra`. */
const MAX_GROUPS = 1_000;
/** Characters of a username, a uid, a group, and of each key and value of `extra`. */
const MAX_TEXT = 1_024;

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;
/** `name:port` or `scheme:name:port`, the names of proxy calls. Each part may be empty. */
const proxied = /^(?:[a-z]{0,5}:(?=[^:]*:))?([^:]{0,253})(?::[-a-z0-9]{0,15})?$/;

/**
 * Denies a review before any work: its name is one that no object can have, or its caller is too large for logs, records, and
 * signatures. Undefined if the review is within limits. The API server calls webhooks before it validates names.
 */
export const limitViolation = (review: Review): Denial | undefined =>
  nameViolation(review) ?? callerViolation(review.user);

function nameViolation({ namespace, name, subResource }: Review): Denial | undefined {
  if (namespace !== '' && !label.test(namespace))
    return invalidName(`namespace ${quote(namespace)} is not a DNS label`);
  const object = subResource === 'proxy' ? (proxied.exec(name)?.[1] ?? '') : name;
  if (name === '' || (object.length <= MAX_NAME && subdomain.test(object))) return undefined;
  return invalidName(`name ${quote(name)} is not a DNS subdomain of at most ${MAX_NAME} characters`);
}

function callerViolation({ username, uid, groups, extra }: UserInfo): Denial | undefined {
  if (groups.length > MAX_GROUPS) {
    return callerTooLarge(`is in ${groups.length} groups; at most ${MAX_GROUPS} are allowed; leave some groups`);
  }
  const extraTexts = Object.entries(extra).flatMap(([key, values]) => [key, ...values]);
  if (extraTexts.length > MAX_GROUPS) {
    return callerTooLarge(
      `has ${extraTexts.length} keys and values in extra; at most ${MAX_GROUPS} are allowed; remove some`,
    );
  }
  const longest = [username, uid, ...groups, ...extraTexts].find((text) => text.length > MAX_TEXT);
  if (longest === undefined) return undefined;
  return callerTooLarge(
    `has a name, uid, group or extra of ${longest.length} characters; at most ${MAX_TEXT} are allowed; shorten it`,
  );
}

/** Cuts or omits everything that exceeds a limit, for observe-only webhooks, which must not deny. */
export function truncateToLimits(review: Review): Review {
  const { username, uid, groups } = review.user;
  const cut = (text: string): string => text.slice(0, MAX_TEXT);
  return {
    ...review,
    ...(nameViolation(review) ? { namespace: '', name: '' } : {}),
    user: { username: cut(username), uid: cut(uid), groups: groups.slice(0, MAX_GROUPS).map(cut), extra: {} },
  };
}

const invalidName = (found: string): Denial => ({ code: 'InvalidName', message: `${found}; correct it`, status: 422 });

const callerTooLarge = (found: string): Denial => ({
  code: 'CallerTooLarge',
  message: `the caller ${found}`,
  status: 403,
});
