import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { inlineCredentials } from '../../../../examples/inventory/components/sdk/credentials.ts';
import {
  configMaps,
  connect,
  type KubeClient,
  namespaces,
  resourcePath,
  secrets,
} from '../../../../examples/inventory/components/sdk/kubernetes.ts';
import { closed, listening } from '../../../support/inventory/components/processes.ts';
import { simulatedKubeconfig } from '../../../support/inventory/kubeconfigs.ts';
import { pluck } from '../../../support/pluck.ts';

describe('the credentials of a kubeconfig', () => {
  it('are a server and a token', () => {
    const { server, tls, token } = inlineCredentials(simulatedKubeconfig('admin'));
    assert.deepEqual([server, tls, token()], ['https://managed.example.org', {}, 'of-admin']);
  });

  for (const [field, value] of [
    ['exec', { command: 'sh' }],
    ['auth-provider', { name: 'x' }],
    ['tokenFile', '/etc/shadow'],
    ['client-certificate', '/etc/shadow'],
    ['client-key', '/etc/shadow'],
    ['username', 'x'],
    ['as', 'system:admin'],
  ] as const) {
    it(`are rejected with ${field}, which would act as this process`, () => {
      const expected = { code: 'KubeconfigForbidden', message: new RegExp(`^kubeconfig: ${field} of the user is not`) };
      assert.throws(() => inlineCredentials(simulatedKubeconfig('x', { [field]: value })), expected);
    });
  }

  for (const [what, text, code] of [
    ['plain HTTP', simulatedKubeconfig('x').replace('https:', 'http:'), 'KubeconfigForbidden'],
    ['no server', simulatedKubeconfig('x').replace(/server: .*/, 'server: ""'), 'KubeconfigInvalid'],
    ['another context', simulatedKubeconfig('x').replace('current-context: managed', ''), 'KubeconfigInvalid'],
    ['a token with a line break', simulatedKubeconfig('x', { token: 'a\nb' }), 'KubeconfigInvalid'],
    ['half a certificate', simulatedKubeconfig('x', { 'client-key-data': 'eA==' }), 'KubeconfigInvalid'],
  ] as const) {
    it(`are rejected with ${what}`, () => assert.throws(() => inlineCredentials(text), { code }));
  }
});

describe('the Kubernetes client of the SDK', () => {
  let server: Server;
  let client: KubeClient;
  let answers: (readonly [status: number, body: object | string])[];
  const calls: { readonly what: string; readonly token: string | undefined }[] = [];
  const metadata = { name: 'a' };

  before(async () => {
    server = createServer(({ method, url, headers }: IncomingMessage, response) => {
      calls.push({ what: `${method} ${url}`, token: headers.authorization });
      const [status, body] = answers.shift() ?? [500, {}];
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    client = connect({ server: await listening(server), tls: {}, token: () => 'mine' });
  });
  after(() => closed(server));
  beforeEach(() => calls.splice(0));

  it('lists all pages', async () => {
    answers = [
      [200, { metadata: { continue: 'x/y' }, items: [{ metadata: { name: 'a' } }] }],
      [200, { metadata: {}, items: [{ metadata: { name: 'b' } }] }],
    ];
    const { items } = await client.list(namespaces);
    assert.equal(items.map((item) => item.metadata.name).join(), 'a,b');
    const first = 'GET /api/v1/namespaces?limit=500';
    assert.deepEqual(pluck(calls, 'what'), [first, `${first}&continue=x%2Fy`]);
    assert.deepEqual(pluck(calls, 'token'), ['Bearer mine', 'Bearer mine']);
  });

  it('rejects a list that does not end', async () => {
    const page = { metadata: { continue: 'x' }, items: [{ metadata: { name: 'a'.repeat(2 ** 21) } }] };
    answers = Array.from({ length: 20 }, () => [200, page]);
    await assert.rejects(client.list(namespaces), {
      name: 'TransportError',
      message: /^GET \/api\/v1\/namespaces: the pages of the list have \d+ characters so far; at most 16777216 /,
    });
    assert.equal(calls.length, 8);
  });

  it('resolves a deletion of what does not exist', async () => {
    answers = [[404, { metadata: {}, message: 'no' }]];
    assert.equal(await client.delete(namespaces, metadata), 'absent');
  });

  it('rejects with the status and the message of the API server', async () => {
    answers = [[403, { kind: 'Status', metadata: {}, message: 'secrets "a" is forbidden' }]];
    await assert.rejects(client.get(namespaces, metadata), { code: 403, message: '403: secrets "a" is forbidden' });
  });

  for (const [what, body] of [
    ['that is not JSON', 'secret of another host'],
    ['that is no Status', { message: 'secret of another host' }],
    ['whose message is no text', { kind: 'Status', message: { secret: 'of another host' } }],
  ] as const) {
    it(`repeats nothing of an answer ${what}`, async () => {
      answers = [[502, body]];
      const message = '502: the answer has no Status with a message';
      await assert.rejects(client.get(namespaces, metadata), { code: 502, message });
    });
  }

  it('rejects an answer that is no object', async () => {
    answers = [[200, []]];
    const expected = { name: 'TransportError', message: /no.* Kubernetes object/ };
    await assert.rejects(client.get(namespaces, metadata), expected);
  });

  it('rejects with the reason of the signal', async () => {
    const signal = AbortSignal.abort(new Error('over'));
    await assert.rejects(client.get(namespaces, metadata, { signal }), /^Error: over$/);
  });

  for (const name of ['', '.', '..']) {
    it(`has no path for the name ${JSON.stringify(name)}, which would lead elsewhere`, () => {
      assert.throws(() => resourcePath(secrets, { namespace: 'a', name }), { code: 'InvalidPathSegment' });
      assert.throws(() => resourcePath(configMaps, { namespace: name, name: 'a' }), { code: 'InvalidPathSegment' });
    });
  }

  it('escapes names', () => {
    assert.equal(resourcePath(secrets, { namespace: 'a', name: '../b' }), '/api/v1/namespaces/a/secrets/..%2Fb');
  });
});
