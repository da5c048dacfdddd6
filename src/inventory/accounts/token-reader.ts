import type { Client } from '../../kube/client.ts';
import type { TokenReader } from '../ports/entry-access.ts';

/** Longer than any token that the API server makes. */
const maxLength = 16_384;

/** Reads tokens by asking the API server, whose audience they have to be of. Rejects as the client does. */
export const tokenReader = (client: Client): TokenReader => ({
  async read(token, signal) {
    if (token.length > maxLength || !/^[\x21-\x7e]+$/.test(token)) return undefined;
    const user = await client.reviewToken(token, { signal });
    const [credentialId, ...more] = user?.extra['authentication.kubernetes.io/credential-id'] ?? [];
    return user && credentialId !== undefined && more.length === 0
      ? { account: user.username, credentialId }
      : undefined;
  },
});
