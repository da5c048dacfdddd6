import { own } from '../../kit/json-value.ts';

/** The id of a ServiceAccount token as the API server gives it to admission and in TokenReviews: `JTI=…`. Nothing of the token is verified. */
export function credentialIdOf(token: string): string | undefined {
  const [, payload] = token.split('.');
  if (!payload) return undefined;
  try {
    const jti = own(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')), 'jti');
    return typeof jti === 'string' && jti !== '' ? `JTI=${jti}` : undefined;
  } catch {
    return undefined;
  }
}
