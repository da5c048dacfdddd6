import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import type { Review, UserInfo } from './codec.ts';
import type { Denial } from './decision.ts';

/** Of a caller. The keys and values of its `extra` together have the same limit. */
const MAX_GROUPS = 1_000;
/** Characters of a username, uid, group, and each key and value of `extra`. */
const MAX_TEXT = 1_024;

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;
/** Characters; a UUID has 36. */
const MAX_UID = 64;
/** `name`, `name:port`, or `scheme:name:port`, as in proxy calls. Each part may be empty. */
const proxyName = /^(?:[a-z]{0,5}:(?=[^:]*:))?([^:]{0,253})(?::[-a-z0-9]{0,15})?$/;

/**
 * `InvalidObject`: no object can have this name, namespace, or uid, which the API
 * server validates later. `CallerTooLarge`: for logs and audit lines.
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

/** For observe-only webhooks, which must not deny. Drops `extra` and invalid names. */
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
  code: 'InvalidObject',
  message: `${found} is invalid; ${allowed}; correct it`,
  status: 422,
});

const callerTooLarge = (found: string): Denial => ({
  code: 'CallerTooLarge',
  message: `the caller ${found}`,
  status: 403,
});
