import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import type { Review, UserInfo } from './codec.ts';
import type { Denial } from './decision.ts';

/** Maximum number of groups of a caller. The keys and values of its `extra` together have the same limit. */
const MAX_GROUPS = 1_000;
/** Maximum length of a username, a uid, a group, and each key and value of `extra`, characters. */
const MAX_TEXT = 1_024;

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;
/** Maximum length of the uid of an object, characters; a UUID has 36. */
const MAX_UID = 64;
/** `name`, `name:port`, or `scheme:name:port`, the names of proxy calls. Each part may be empty. */
const proxyName = /^(?:[a-z]{0,5}:(?=[^:]*:))?([^:]{0,253})(?::[-a-z0-9]{0,15})?$/;

/**
 * Why the server denies a review before its handler runs; undefined if the review is within the limits. `InvalidName` or `InvalidObject`:
 * no object can have its name, namespace, or uid; the API server calls webhooks before it validates names. `CallerTooLarge`: the name, uid,
 * groups, or extra fields of its caller are too long or too many for logs, audit lines, and signatures.
 */
export const limitViolation = (review: Review): Denial | undefined =>
  nameViolation(review) ??
  metadataViolation(review.object) ??
  metadataViolation(review.oldObject) ??
  callerViolation(review.user);

function nameViolation({ namespace, name, subResource }: Review): Denial | undefined {
  if (namespace !== '' && !label.test(namespace)) {
    return invalidName(
      `namespace ${quote(namespace)}`,
      'at most 63 lower-case letters, digits, and "-" are allowed, with a letter or digit at each end',
    );
  }
  const object = subResource === 'proxy' ? (proxyName.exec(name)?.[1] ?? '') : name;
  return name === '' || isName(object) ? undefined : invalidName(`name ${quote(name)}`, nameRule);
}

/** Attestations sign the name and uid in the object. In a forged review, these may differ from the name and uid of the review. */
function metadataViolation(object: unknown): Denial | undefined {
  const metadata = own(object, 'metadata');
  const name = own(metadata, 'name') ?? '';
  if (typeof name === 'string' && name !== '' && !isName(name)) {
    return invalidName(`metadata.name ${quote(name)}`, nameRule);
  }
  const uid = own(metadata, 'uid');
  if (typeof uid !== 'string' || uid.length <= MAX_UID) return undefined;
  const message = `metadata.uid has ${uid.length} characters; at most ${MAX_UID} are allowed; omit it`;
  return { code: 'InvalidObject', message, status: 422 };
}

const nameRule = `at most ${MAX_NAME} lower-case letters, digits, "-", and "." are allowed, with a letter or digit at each end and next to each "."`;
const isName = (name: string): boolean => name.length <= MAX_NAME && subdomain.test(name);

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
    `has a name, uid, group, or extra of ${longest.length} characters; at most ${MAX_TEXT} are allowed; shorten it`,
  );
}

/**
 * The review with its caller cut to the limits, without `extra`. If its name or namespace is invalid, both are empty. For observe-only
 * webhooks, which must not deny. The objects stay unchanged.
 */
export function truncateToLimits(review: Review): Review {
  const { username, uid, groups } = review.user;
  const cut = (text: string): string => text.slice(0, MAX_TEXT);
  return {
    ...review,
    ...(nameViolation(review) ? { namespace: '', name: '' } : {}),
    user: { username: cut(username), uid: cut(uid), groups: groups.slice(0, MAX_GROUPS).map(cut), extra: {} },
  };
}

const invalidName = (found: string, allowed: string): Denial => ({
  code: 'InvalidName',
  message: `${found} is invalid; ${allowed}; correct it`,
  status: 422,
});

const callerTooLarge = (found: string): Denial => ({
  code: 'CallerTooLarge',
  message: `the caller ${found}`,
  status: 403,
});
