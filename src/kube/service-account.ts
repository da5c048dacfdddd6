import { own } from '../kit/json-value.ts';
import type { Credentials } from './credentials.ts';

/** Of a token, as a Lease records its holder. */
export interface ServiceAccountId {
  /** `namespace/name`. */
  readonly key: string;
  readonly uid: string;
  /** When the API server issued the token, epoch seconds. */
  readonly issuedAt: number;
}

/** That of the token that `credentials` send now, if any. Rejects as `connectionAuth` does. */
export async function serviceAccountOf({ connectionAuth }: Credentials): Promise<ServiceAccountId | undefined> {
  const { authorization } = (await connectionAuth()).headers;
  // The claims are between the first two dots. Own tokens are trusted: no signature is verified.
  const [, payload = ''] = (typeof authorization === 'string' ? authorization : '').split('.');
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
  } catch {
    return undefined;
  }
  const kubernetes = own(claims, 'kubernetes.io');
  const account = own(kubernetes, 'serviceaccount');
  return idOf(`${own(kubernetes, 'namespace')}/${own(account, 'name')}`, own(account, 'uid'), own(claims, 'iat'));
}

/** The text that `readServiceAccount` reads. */
export const formatServiceAccount = ({ key, uid, issuedAt }: ServiceAccountId): string => `${key} ${uid} ${issuedAt}`;

export function readServiceAccount(text: unknown): ServiceAccountId | undefined {
  const [key, uid, issuedAt] = typeof text === 'string' ? text.split(' ') : [];
  return idOf(key, uid, Number(issuedAt));
}

/**
 * The same name with another uid: `before` was deleted. Its cached tokens stay valid for about 10
 * s; the times break the symmetry, because all its tokens were issued first.
 */
export const replaces = (account: ServiceAccountId, before: ServiceAccountId): boolean =>
  account.key === before.key && account.uid !== before.uid && account.issuedAt > before.issuedAt;

const idOf = (key: unknown, uid: unknown, issuedAt: unknown): ServiceAccountId | undefined =>
  typeof key === 'string' && typeof uid === 'string' && uid !== '' && typeof issuedAt === 'number' && issuedAt > 0
    ? { key, uid, issuedAt }
    : undefined;
