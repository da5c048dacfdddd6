import { isRecord, own, strings } from '../kit/json-value.ts';
import type { TokenUser } from './client.ts';

/** Nothing unless the TokenReview authenticates the token for a requested audience. */
export function tokenUserOf(status: unknown, audiences: readonly string[] | undefined): TokenUser | undefined {
  const username = own(own(status, 'user'), 'username');
  if (own(status, 'authenticated') !== true || typeof username !== 'string' || username === '') return undefined;
  // Without audiences from its authenticator, a token is valid for the API server only.
  if (audiences && !strings(own(status, 'audiences')).some((audience) => audiences.includes(audience)))
    return undefined;
  const user = own(status, 'user');
  const uid = own(user, 'uid');
  const extra = own(user, 'extra');
  return {
    username,
    uid: typeof uid === 'string' ? uid : '',
    groups: strings(own(user, 'groups')),
    extra: Object.fromEntries(
      Object.entries(isRecord(extra) ? extra : {}).map(([key, values]) => [key, strings(values)]),
    ),
  };
}
