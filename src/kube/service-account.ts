import { own } from '../kit/json-value.ts';
import type { Credentials } from './credentials.ts';

/** The ServiceAccount of a token, as a Lease records its holder. */
export interface ServiceAccountId {
  /** `namespace/name`. */
  readonly key: string;
  readonly uid: string;
  /** When the API server issued the token, epoch seconds. */
  readonly issuedAt: number;
}

/** The ServiceAccount whose token `credentials` send now; undefined if they send no such token. Rejects as `connectionAuth` does. */
export async function serviceAccountOf({ connectionAuth }: Credentials): Promise<ServiceAccountId | undefined> {
  const { authorization } = (await connectionAuth()).headers;
  // The claims are between the first two dots. This process trusts its own token, so it verifies no signature.
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

/** Undefined for any other text. */
export function readServiceAccount(text: unknown): ServiceAccountId | undefined {
  const [key, uid, issuedAt] = typeof text === 'string' ? text.split(' ') : [];
  return idOf(key, uid, Number(issuedAt));
}

/**
 * Whether `account` replaced `before`: it has the name, but another uid, so `before` was deleted.
 * The API server caches tokens, so those of `before` stay valid for about 10 s. The times break the
 * symmetry: the API server issued every token of `before` first.
 */
export const replaces = (account: ServiceAccountId, before: ServiceAccountId): boolean =>
  account.key === before.key && account.uid !== before.uid && account.issuedAt > before.issuedAt;

const idOf = (key: unknown, uid: unknown, issuedAt: unknown): ServiceAccountId | undefined =>
  typeof key === 'string' && typeof uid === 'string' && uid !== '' && typeof issuedAt === 'number' && issuedAt > 0
    ? { key, uid, issuedAt }
    : undefined;
