import assert from 'node:assert/strict';
import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { staticCredentials, withToken } from '../../../src/kube/credentials.ts';

describe('credentials with another token', () => {
  const authority = createAuthority('test-ca');
  const { certificate: cert, key } = issue(authority, { commonName: 'server' });
  const connection = {
    ca: authority.certificate,
    servername: 'inner',
    rejectUnauthorized: false,
    proxy: 'http://me:secret@proxy.test:3128',
  };

  it('connect to the same server in the same way, and authenticate with that token only', async () => {
    const own = staticCredentials({ server: 'https://one.test', token: 'own', tls: { ...connection, cert, key } });
    const other = withToken(own, 'of-a-run');
    assert.equal(other.server, 'https://one.test');
    assert.deepEqual(await other.connectionAuth(), { tls: connection, headers: { authorization: 'Bearer of-a-run' } });
  });
});
