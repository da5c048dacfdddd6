import { CodedError } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';

/**
 * What the API server will say of a token that it has just made, as `authentication.kubernetes.io/credential-id`: read from the token,
 * so that it can be stored before anybody has it. @throws CodedError `NoCredentialId`.
 */
export function credentialIdOf(token: string): string {
  const id = own(payloadOf(token), 'jti');
  if (typeof id === 'string' && /^[\x21-\x7e]{1,100}$/.test(id)) return `JTI=${id}`;
  throw new CodedError(
    'NoCredentialId',
    'the token has no id (jti), so that nobody could tell the runs apart; Kubernetes 1.32 or newer gives one',
  );
}

function payloadOf(token: string): unknown {
  const [, payload = ''] = token.split('.');
  try {
    return parseJson(Buffer.from(payload, 'base64url'));
  } catch {
    return undefined;
  }
}
