import { quote } from '../kit/errors.ts';
import type { Review, UserInfo } from './codec.ts';
import type { Refusal } from './decision.ts';

/** Groups of a caller, and values of all its `extra` together. */
const MAX_GROUPS = 1_000;
/** Characters of a username, a uid, a group, and of each key and value of `extra`. */
const MAX_TEXT = 1_024;

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;
/** `name:port` and `scheme:name:port`, as proxies are asked for; each part may be empty. */
const proxied = /^(?:[a-z]{0,5}:(?=[^:]*:))?([^:]{0,253})(?::[-a-z0-9]{0,15})?$/;

/**
 * Why a review is not worth any work: a name that no object can have, or a caller that takes too much room in logs, records and
 * signatures. Undefined when all is well. The API server asks webhooks before it checks names itself.
 */
export const excessOf = (review: Review): Refusal | undefined => wrongName(review) ?? excessOfCaller(review.user);

function wrongName({ namespace, name, subResource }: Review): Refusal | undefined {
  if (namespace !== '' && !label.test(namespace)) return invalidName(`namespace ${quote(namespace)} is no DNS label`);
  const object = subResource === 'proxy' ? (proxied.exec(name)?.[1] ?? '') : name;
  if (name === '' || (object.length <= MAX_NAME && subdomain.test(object))) return undefined;
  return invalidName(`name ${quote(name)} is no DNS subdomain of at most ${MAX_NAME} characters`);
}

function excessOfCaller({ username, uid, groups, extra }: UserInfo): Refusal | undefined {
  if (groups.length > MAX_GROUPS) {
    return excess(`is in ${groups.length} groups; at most ${MAX_GROUPS} are allowed; leave some`);
  }
  const about = Object.entries(extra).flatMap(([key, values]) => [key, ...values]);
  if (about.length > MAX_GROUPS) {
    return excess(`has ${about.length} keys and values in extra; at most ${MAX_GROUPS} are allowed`);
  }
  const longest = [username, uid, ...groups, ...about].find((text) => text.length > MAX_TEXT);
  if (longest === undefined) return undefined;
  return excess(`has a name, uid, group or extra of ${longest.length} characters; at most ${MAX_TEXT} are allowed`);
}

/** The same review with what exceeds a limit cut or left out, for webhooks that only watch: they keep nobody out. */
export function withinLimits(review: Review): Review {
  const { username, uid, groups } = review.user;
  const cut = (text: string): string => text.slice(0, MAX_TEXT);
  return {
    ...review,
    ...(wrongName(review) ? { namespace: '', name: '' } : {}),
    user: { username: cut(username), uid: cut(uid), groups: groups.slice(0, MAX_GROUPS).map(cut), extra: {} },
  };
}

const invalidName = (found: string): Refusal => ({ code: 'InvalidName', message: `${found}; correct it`, status: 422 });

const excess = (found: string): Refusal => ({ code: 'CallerTooLarge', message: `the caller ${found}`, status: 403 });
