import assert from 'node:assert/strict';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { formatServiceAccount, readServiceAccount, serviceAccountOf } from '../../../src/kube/service-account.ts';

const server = 'https://127.0.0.1:1';
const tokenOf = (claims: unknown): string =>
  `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`;
const serviceaccount = { name: 'drawbridge', uid: 'u-1' };
const claims = { iat: 1764354000, 'kubernetes.io': { namespace: 'system', serviceaccount } };

describe('the ServiceAccount of a token', () => {
  const of = (token?: string) =>
    serviceAccountOf(staticCredentials({ server, ...(token === undefined ? {} : { token }) }));

  it('is what the API server wrote into it', async () => {
    const account = { key: 'system/drawbridge', uid: 'u-1', issuedAt: 1764354000 };
    assert.deepEqual(await of(tokenOf(claims)), account);
    assert.deepEqual(readServiceAccount(formatServiceAccount(account)), account);
  });

  for (const [what, token] of [
    ['no token', undefined],
    ['an opaque token', 'abcdef'],
    ['a token without JSON', 'a.b.c'],
    ['a token of a person', tokenOf({ sub: 'alice', iat: 1 })],
    ['a token without a time', tokenOf({ ...claims, iat: 'now' })],
    ['a token without a uid', tokenOf({ iat: 1, 'kubernetes.io': { namespace: 'system', serviceaccount: {} } })],
  ] as const) {
    it(`is unknown for ${what}`, async () => assert.equal(await of(token), undefined));
  }

  for (const text of [undefined, 7, '', 'a', 'ns/a uid', 'ns/a uid soon', 'ns/a  5'])
    it(`is unknown for ${JSON.stringify(text)} on a Lease`, () => assert.equal(readServiceAccount(text), undefined));
});
