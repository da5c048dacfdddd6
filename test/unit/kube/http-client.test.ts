import assert from 'node:assert/strict';
import { deployments, leases, namespaces, pods, secrets } from '../../../src/api/resources.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { resourcePath } from '../../../src/kube/api-paths.ts';
import type { Client } from '../../../src/kube/client.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { isAlreadyExists, isConflict, isExpired, isNotFound, TransportError } from '../../../src/kube/errors.ts';
import { createClient } from '../../../src/kube/http-client.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { until } from '../../support/io.ts';
import { pod, ScriptedApiserver, type ScriptedRequest } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('client', () => {
  let server: ScriptedApiserver;
  let transport: Transport;
  let client: Client;

  before(async () => {
    server = await ScriptedApiserver.start(() => undefined);
    transport = new Transport(staticCredentials({ server: server.url }), { clock: new SimulatedClock() });
    client = createClient(transport);
  });

  beforeEach(() => {
    server.requests.length = 0;
    server.follow((request, answer) => answer.json(200, request.method === 'POST' ? request.body : pod('a', '1')));
  });

  after(async () => {
    const closing = transport.close();
    await server.close();
    await closing;
  });

  const a = { namespace: 'default', name: 'a' };
  const podPath = '/api/v1/namespaces/default/pods/a';
  const bare = { apiVersion: 'v1', kind: 'Pod', metadata: a };
  const json = 'application/json';

  const requests: [what: string, call: () => Promise<unknown>, line: string, type: string | undefined][] = [
    ['get', () => client.get(pods, a), `GET ${podPath}`, undefined],
    ['get of status', () => client.get(pods, a, { subresource: 'status' }), `GET ${podPath}/status`, undefined],
    ['get of a cluster-scoped one', () => client.get(namespaces, { name: 'x' }), 'GET /api/v1/namespaces/x', undefined],
    ['create', () => client.create(pods, bare), 'POST /api/v1/namespaces/default/pods', json],
    [
      'dry-run create',
      () => client.create(pods, bare, { dryRun: true, fieldManager: 'me' }),
      'POST /api/v1/namespaces/default/pods?fieldManager=me&dryRun=All',
      json,
    ],
    ['replace', () => client.replace(pods, bare), `PUT ${podPath}`, json],
    ['mergePatch', () => client.mergePatch(pods, a, {}), `PATCH ${podPath}`, 'application/merge-patch+json'],
    [
      'mergePatch of status',
      () => client.mergePatch(pods, a, {}, { subresource: 'status' }),
      `PATCH ${podPath}/status`,
      'application/merge-patch+json',
    ],
    [
      'jsonPatch',
      () => client.jsonPatch(pods, a, [{ op: 'remove', path: '/metadata/labels' }]),
      `PATCH ${podPath}`,
      'application/json-patch+json',
    ],
    [
      'apply',
      () => client.apply(pods, bare, { fieldManager: 'me', force: true }),
      `PATCH ${podPath}?fieldManager=me&force=true`,
      'application/apply-patch+yaml',
    ],
    ['delete', () => client.delete(pods, a), `DELETE ${podPath}`, json],
    ['raw', () => client.raw('/version'), 'GET /version', undefined],
    ['other group', () => client.get(deployments, a), 'GET /apis/apps/v1/namespaces/default/deployments/a', undefined],
  ];
  for (const [what, call, line, type] of requests) {
    it(`sends ${what} as ${line}`, async () => {
      await call();
      const [request] = server.requests;
      const query = request?.query.toString();
      assert.equal(`${request?.method} ${request?.path}${query ? `?${query}` : ''}`, line);
      assert.equal(request?.headers['content-type'], type);
    });
  }

  it('lists one namespace or all, with selectors', async () => {
    server.follow((_request, answer) => answer.list('9', [{ metadata: { namespace: 'n', name: 'a' } }, 'junk', {}]));
    const page = await client.list(pods, { labelSelector: 'a in (b,c)', fieldSelector: 'spec.nodeName=x' });
    assert.deepEqual(page, {
      items: [{ metadata: { namespace: 'n', name: 'a' }, apiVersion: 'v1', kind: 'Pod' }],
      resourceVersion: '9',
    });
    await client.list(pods, { namespace: 'n', limit: 2, resourceVersion: '0' });
    assert.deepEqual(
      server.requests.map(({ path, query }) => [path, Object.fromEntries(query)]),
      [
        ['/api/v1/pods', { limit: '500', labelSelector: 'a in (b,c)', fieldSelector: 'spec.nodeName=x' }],
        ['/api/v1/namespaces/n/pods', { limit: '2', resourceVersion: '0' }],
      ],
    );
  });

  it('restarts an expired list once, then rejects', async () => {
    server.follow((request, answer) =>
      request.query.has('continue') ? answer.status(410, 'Expired') : answer.list('9', [pod('a', '1')], 'next'),
    );
    await assert.rejects(client.list(pods), isExpired);
    assert.equal(server.requests.length, 4);
  });

  it('deletes with preconditions, propagation, and grace period', async () => {
    server.follow((_request, answer) => answer.json(200, { kind: 'Status' }));
    const options = { uid: 'u', propagation: 'Background', gracePeriodSeconds: 0 } as const;
    assert.equal(await client.delete(pods, a, options), 'deleted');
    await client.delete(pods, a);
    assert.deepEqual(
      server.requests.map(({ body }) => body),
      [
        {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          preconditions: { uid: 'u' },
          propagationPolicy: 'Background',
          gracePeriodSeconds: 0,
        },
        { apiVersion: 'v1', kind: 'DeleteOptions' },
      ],
    );
    server.follow((_request, answer) => answer.status(404, 'NotFound'));
    assert.equal(await client.delete(pods, a), 'absent');
    server.follow((_request, answer) => answer.status(409, 'Conflict'));
    await assert.rejects(client.delete(pods, a, { uid: 'other' }), isConflict);
  });

  it('returns an object that finalizers keep, and none that is deleted', async () => {
    const held = { ...pod('a', '1'), metadata: { ...a, finalizers: ['example.com/hold'] } };
    server.follow((_request, answer) => answer.json(200, held));
    assert.deepEqual(await client.delete(pods, a), { held });
    server.follow((_request, answer) => answer.json(200, pod('a', '1')));
    assert.equal(await client.delete(pods, a), 'deleted');
  });

  it('distinguishes the common errors', async () => {
    server.follow((_request, answer) => answer.status(409, 'AlreadyExists'));
    await assert.rejects(client.create(pods, bare), (error) => isAlreadyExists(error) && !isConflict(error));
    server.follow((_request, answer) => answer.status(404, 'NotFound'));
    await assert.rejects(client.get(pods, a), isNotFound);
  });

  it('rejects an answer that is not an object', async () => {
    for (const body of [null, [], 'text', {}, { metadata: null }, { metadata: { name: 3 } }]) {
      server.follow((_request, answer) => answer.json(200, body));
      await assert.rejects(client.create(pods, bare), TransportError);
    }
  });

  it('requests a token of a ServiceAccount', async () => {
    server.follow((_request, answer) => answer.json(201, { status: { token: 't', expirationTimestamp: 'e' } }));
    const token = await client.createToken(a, { audiences: ['x'], expirationSeconds: 600 });
    assert.deepEqual(token, { token: 't', expiresAt: 'e' });
    assert.equal(server.requests[0]?.path, '/api/v1/namespaces/default/serviceaccounts/a/token');
    assert.deepEqual(specOf(server.requests[0]), { audiences: ['x'], expirationSeconds: 600 });
  });

  for (const [status, allowed] of [
    [{ allowed: true }, true],
    [{ allowed: false, denied: true }, false],
    [{ allowed: 'true' }, false],
    [undefined, false],
  ] as const) {
    it(`reads a review of ${JSON.stringify(status)} as ${allowed}`, async () => {
      server.follow((_request, answer) => answer.json(201, { status }));
      const question = { user: 'u', groups: ['g'], verb: 'get', group: '', resource: 'pods', namespace: 'n' };
      assert.equal(await client.isAllowed(question), allowed);
      assert.deepEqual(specOf(server.requests[0]), {
        user: 'u',
        groups: ['g'],
        resourceAttributes: { verb: 'get', group: '', resource: 'pods', namespace: 'n' },
      });
    });
  }

  it('escapes names in paths', async () => {
    assert.equal(resourcePath(pods, { namespace: 'a b', name: 'x?y#z' }), '/api/v1/namespaces/a%20b/pods/x%3Fy%23z');
    // An API server decodes the whole path, and names with these do not exist.
    for (const name of ['', '.', '..', 'a/b', '../x', 'a%2fb']) {
      assert.throws(() => resourcePath(namespaces, { name }), { code: 'InvalidPathSegment' });
    }
    assert.throws(() => resourcePath(pods, { namespace: '..', name: 'x' }), { code: 'InvalidPathSegment' });
    assert.throws(() => resourcePath(secrets, { name: 'x' }), { code: 'NamespaceRequired' });
    await assert.rejects(client.get(leases, { name: 'x' }), { code: 'NamespaceRequired' });
    assert.equal(resourcePath(namespaces, { namespace: 'ignored', name: 'x' }), '/api/v1/namespaces/x');
  });

  it('allows reads and rejects writes while it is not the leader', async () => {
    let open = false;
    const fenced = client.leaderOnly(() => {
      if (!open) throw new Error('closed');
    });
    const writes: (() => Promise<unknown>)[] = [
      () => fenced.create(pods, bare),
      () => fenced.replace(pods, bare),
      () => fenced.mergePatch(pods, a, {}),
      () => fenced.jsonPatch(pods, a, []),
      () => fenced.apply(pods, bare, { fieldManager: 'me' }),
      () => fenced.delete(pods, a),
      () => fenced.createToken(a, { expirationSeconds: 600 }),
    ];
    for (const write of writes) await assert.rejects(write(), /closed/);
    assert.equal(server.requests.length, 0);
    await fenced.get(pods, a);
    open = true;
    await fenced.create(pods, bare);
    assert.equal(server.requests.length, 2);
  });

  it('sends urgent calls past hanging ones, each with a limit of five seconds', async () => {
    const clock = new SimulatedClock();
    const transport = new Transport(staticCredentials({ server: server.url }), { clock, connections: 1 });
    const patient = createClient(transport);
    const urgent = patient.leaderOnly(() => {}).urgent();
    server.follow(({ method }, answer) => (method === 'DELETE' ? answer.json(200, {}) : undefined));
    const others = [patient.create(pods, bare), urgent.create(pods, bare)].map((call) =>
      call.catch((error: unknown) => error),
    );
    await until(() => server.requests.length === 2);
    const listing = urgent.list(pods).catch((error: unknown) => error);
    await until(() => server.requests.length === 3);
    await urgent.delete(pods, a);
    await clock.advance(4_999);
    assert.equal(await Promise.race([others[1], listing, 'still waits']), 'still waits');
    await clock.advance(1);
    assert.match(String(await others[1]), /no answer .* in time/);
    assert.match(String(await listing), /no answer .* in time/);
    await Promise.all([transport.close(), clock.advance(30_000)]);
  });

  it('checks the leadership again before it retries a write', async () => {
    let looks = 0;
    const patient = new Transport(staticCredentials({ server: server.url }), { clock: systemClock });
    const fenced = createClient(patient).leaderOnly(() => {
      if (++looks > 1) throw new Error('closed');
    });
    server.follow((_request, answer) => answer.status(429, 'TooManyRequests', { 'retry-after': '0' }));
    await assert.rejects(fenced.create(pods, bare), /closed/);
    assert.equal(server.requests.length, 1);
    await patient.close();
  });
});

function specOf(request: ScriptedRequest | undefined): unknown {
  return (request?.body as { spec?: unknown } | undefined)?.spec;
}
