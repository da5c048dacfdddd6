import assert from 'node:assert/strict';
import type { ReconcileRequest } from '../../../../src/api/inventory/contract/request.ts';
import { addressViolation, entryAt } from '../../../../src/inventory/sdk/http-transports.ts';

const apiUrl = 'https://api.example.org/base';
const url = `${apiUrl}/apis/inventory.drawbridge.dev/v1alpha1/namespaces/fleet/clusterinventories/rt-1`;
const callback = 'https://drawbridge.example.org/v1/runs/u.c.1';
const own = { apiUrl, apiCa: 'PEM\n', callbackUrl: 'https://drawbridge.example.org' };
const request = {
  run: { id: 'u.c.1' },
  entry: { url, id: 'u', resourceVersion: '1' },
  auth: { token: 't', ca: 'PEM' },
  callback,
} as unknown as ReconcileRequest;

describe('addresses in a request', () => {
  it('are accepted if they match the configuration', () => {
    assert.deepEqual(entryAt(apiUrl, url), { namespace: 'fleet', name: 'rt-1' });
    assert.equal(addressViolation(request, own), undefined);
  });

  for (const wrong of [
    url.replace('api.example.org', 'evil.example.org'),
    url.replace('api.example.org', 'api.example.org.evil.example.org'),
    url.replace('/base', ''),
    `${url}/status`,
    `${url}?x=y`,
    `${url}#x`,
    url.replace('rt-1', '..'),
    url.replace('fleet', '../fleet'),
    url.replace('rt-1', '%2e%2e'),
    url.replace('clusterinventories', 'reconcileruns'),
    `${apiUrl}@evil.example.org/`,
    '',
  ]) {
    it(`are rejected for the entry URL ${wrong || '(empty)'}`, () => {
      assert.equal(entryAt(apiUrl, wrong), undefined);
      assert.match(addressViolation({ ...request, entry: { ...request.entry, url: wrong } }, own) ?? '', /entry\.url/);
    });
  }

  it('must contain the callback of the same run', () => {
    for (const wrong of [`${callback}1`, callback.replace('drawbridge', 'evil'), `${callback}/../x`]) {
      assert.match(addressViolation({ ...request, callback: wrong }, own) ?? '', /callback/);
    }
  });

  it('must contain the configured CA, or none if none is configured', () => {
    const bare = { ...request, auth: { token: 't', expires: '' } };
    assert.match(addressViolation(bare, own) ?? '', /auth.ca differs/);
    assert.equal(addressViolation(bare, { ...own, apiCa: undefined }), undefined);
  });
});
