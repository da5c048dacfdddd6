import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import {
  addressViolation,
  entryNameIn,
  httpTransports,
  requireEncryption,
} from '../../../../examples/inventory/components/sdk/http-transports.ts';
import type { ReconcileRequest } from '../../../../src/api/inventory/contract/request.ts';
import { type Listening, listenHttp } from '../../../../src/kit/listen.ts';

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
    assert.deepEqual(entryNameIn(apiUrl, url), { namespace: 'fleet', name: 'rt-1' });
    assert.equal(addressViolation(request, own), undefined);
  });

  for (const wrong of [
    url.replace('api.example.org', 'evil.example.org'),
    url.replace('api.example.org', 'api.example.org.evil.example.org'),
    url.replace('/base', ''),
    `${url}/status`,
    `${url}?x=y`,
    `${url}#x`,
    url.replace('inventory.drawbridge.dev', 'inventory-drawbridge-dev'),
    url.replace('rt-1', '..'),
    url.replace('fleet', '../fleet'),
    url.replace('rt-1', '%2e%2e'),
    url.replace('clusterinventories', 'reconcileruns'),
    `${apiUrl}@evil.example.org/`,
    '',
  ]) {
    it(`are rejected for the entry URL ${wrong || '(empty)'}`, () => {
      assert.equal(entryNameIn(apiUrl, wrong), undefined);
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

describe('configured addresses', () => {
  for (const address of ['https://a.example.org', 'http://127.0.0.1:9444', 'http://localhost:1', 'http://[::1]:1/a']) {
    it(`may be ${address}`, () => requireEncryption({ apiUrl: address, apiCa: undefined, callbackUrl: address }));
  }

  const insecure = ['http://a.example.org', 'http://127.0.0.1.example.org', 'http://10.0.0.1', 'ftp://localhost', 'a'];
  for (const address of insecure) {
    it(`must not be ${address}, over which tokens would travel in clear text`, () => {
      for (const field of ['apiUrl', 'callbackUrl']) {
        const allowed = 'allowed are https URLs, and http only for loopback addresses';
        const message = new RegExp(`^${field} is "${address}"; ${allowed}`);
        assert.throws(() => requireEncryption({ ...own, [field]: address }), { code: 'InsecureAddress', message });
      }
    });
  }
});

describe('answers to reports', () => {
  const transports = httpTransports({ apiUrl, apiCa: undefined, callbackCa: undefined });
  let server: Listening;
  let next: { status: number; body: string };
  before(async () => {
    const answering = createServer((_, response) => response.writeHead(next.status).end(next.body));
    server = await listenHttp(answering, '127.0.0.1', 0);
  });
  after(() => server.close());
  const report = (status: number, body: string) => {
    next = { status, body };
    const callbackUrl = `http://127.0.0.1:${server.port}/v1/runs/u.c.1`;
    return transports.report({ ...request, callback: callbackUrl }, 't', {}, new AbortController().signal);
  };

  const message = 'text of the server';
  const cases: [sent: number, code: string, status: number, readCode: string][] = [
    [400, 'InvalidReport', 400, 'InvalidReport'],
    [401, 'Unauthorized', 403, 'ForeignCredential'],
    [403, 'ForeignCredential', 403, 'ForeignCredential'],
    [409, 'RunOver', 409, 'RunOver'],
    [409, 'OutcomeDiffers', 409, 'OutcomeDiffers'],
    [413, 'TooLarge', 400, 'InvalidReport'],
    [404, 'NotFound', 503, 'Unavailable'],
    [500, 'Crashed', 503, 'Unavailable'],
    [503, 'NotLeading', 503, 'Unavailable'],
  ];
  for (const [sent, code, status, readCode] of cases) {
    it(`${sent} ${code} counts as ${status} ${readCode}`, async () => {
      assert.deepEqual(await report(sent, JSON.stringify({ code, message })), { status, code: readCode, message });
    });
  }

  it('without a body count by their status', async () => {
    assert.deepEqual(await report(200, ''), { status: 200, extension: undefined });
    const unavailable = { status: 503, code: 'Unavailable', message: 'the callback answered with status 502' };
    assert.deepEqual(await report(502, ''), unavailable);
  });

  it('that are not JSON, such as the page of a proxy, count as no answer', async () => {
    for (const status of [200, 403, 409, 502]) {
      await assert.rejects(report(status, '<html>'), {
        name: 'TransportError',
        message: new RegExp(`status ${status} and a body that cannot be parsed as JSON; check that the callback URL`),
      });
    }
  });
});
