import assert from 'node:assert/strict';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { S3Server } from '../../../sandbox/s3-server.ts';
import { Terminal } from '../../../sandbox/terminal.ts';
import { until } from '../../../sandbox/wait.ts';
import { childNameOf } from '../../../src/api/access/names.ts';
import { gatewayApiService, gatewayGroup, gatewayUserOf, gatewayVersion } from '../../../src/api/gateway/names.ts';
import { execRequest, type StoredRequest } from '../../support/access-requests.ts';
import { deniedCalls, rightFor, rightsIn, rolesIn, rulesOf } from '../../support/chart-manifests.ts';
import { ChartStage } from '../../support/chart-stage.ts';
import type { Person } from '../../support/person.ts';
import { accountUser } from '../../support/server-token.ts';

const apiServiceUrl = `/apis/apiregistration.k8s.io/v1/apiservices/${gatewayApiService}`;

interface ApiService {
  readonly spec: { readonly caBundle?: string; readonly service: { readonly name: string } };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

describe('the chart with the gateway, installed by Helm', function () {
  this.timeout(180_000);
  let stage: ChartStage;
  let request: StoredRequest;
  /** The arguments of kubectl that lead through the gateway. */
  let via: string[];
  /** Where it stores recordings. */
  let s3: S3Server;
  let on: object;

  before(async () => {
    stage = await ChartStage.open();
    const directory = join(stage.plane.directory, 's3');
    await mkdir(directory);
    s3 = await S3Server.start(directory, 'recordings');
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = s3.env;
    await stage.plane.call('POST', `/api/v1/namespaces/${stage.namespace}/secrets`, {
      metadata: { name: 's3-credentials' },
      stringData: { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY },
    });
    const bucket = {
      bucket: 'recordings',
      prefix: 'prod',
      endpoint: s3.url,
      caBundle: await readFile(s3.caFile, 'utf8'),
      secretName: 's3-credentials',
    };
    on = { features: { gateway: true }, gateway: { recordings: { s3: bucket } } };
  });
  after(async () => {
    await s3?.stop();
    await stage?.close();
  });

  const apiService = async (): Promise<ApiService> => (await stage.plane.probe(apiServiceUrl)).body as ApiService;
  const alice = (...args: string[]) => stage.alice.kubectl(args, { reject: false });

  it('becomes available beside access, with two replicas and a certificate of its own', async () => {
    await stage.install('own', on);
    await stage.kubelet.switchService('drawbridge-gateway');
    const wait = ['wait', '--for=condition=Available', `apiservice/${gatewayApiService}`, '--timeout=60s'];
    const { code, stderr } = await stage.plane.kubectl(wait, { reject: false });
    assert.equal(code, 0, `${stderr}${JSON.stringify(await apiService())}${await stage.kubelet.logs()}`);
    const ready = stage.kubelet.pods.filter(({ endpoint, name }) => endpoint && name.includes('gateway'));
    assert.equal(ready.length, 2);
    assert.match(Buffer.from((await apiService()).spec.caBundle ?? '', 'base64').toString(), /BEGIN CERTIFICATE/);
  });

  it('opens sessions of a template that says so, with its own permissions, and records them in the bucket of the values', async () => {
    const template = {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessTemplate',
      metadata: { name: 'payments-gateway', namespace: stage.payments },
      spec: {
        accessConfig: {
          allowedGroups: ['devs'],
          defaultDuration: '30m',
          maxDuration: '2h',
          session: { via: 'Gateway', record: 'Required' },
        },
        controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
      },
    };
    await stage.plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(template) });
    request = await stage.createReady(stage.alice, execRequest('debug', { templateName: 'payments-gateway' }));
    const grant = childNameOf(request.metadata);
    const path = `/apis/${gatewayGroup}/${gatewayVersion}/namespaces/${stage.payments}/grants/${grant}/proxy`;
    via = [`--server=${stage.plane.server}${path}`, '-n', stage.payments];
    const pod = request.status?.podName ?? '';
    const { stdout, stderr, code } = await alice(...via, 'exec', pod, '--', 'sh', '-c', 'echo inside; exit 7');
    const calls = stage.plane.auditLog.calls({ user: 'alice', resources: ['grants/proxy'] });
    const answers = calls.map((call) => `${call.verb} ${call.uri} ${call.code}`).join('\n');
    assert.deepEqual([stdout, code], ['inside\n', 7], `${answers}\n${stderr}${await stage.kubelet.logs()}`);
    const folder = join(s3.bucket('recordings'), 'prod', stage.payments);
    const [session = ''] = await readdir(folder);
    const isRecorded = async (): Promise<boolean> => {
      const parts = await Promise.all(
        (await readdir(join(folder, session))).map((part) => readFile(join(folder, session, part), 'utf8')),
      );
      return parts.some((text) => text.includes('inside'));
    };
    await until('the recording to be in the bucket', isRecorded, { timeoutMs: 30_000 });
    const direct = await alice('exec', '-n', stage.payments, pod, '--', 'true');
    assert.notEqual(direct.code, 0);
    const bob = await stage.bob.kubectl([...via, 'exec', pod, '--', 'true'], { reject: false });
    assert.match(bob.stderr, /Forbidden/);
  });

  it('makes no call that its permissions do not allow', async () => {
    const calls = stage.plane.auditLog.calls({ user: gatewayUserOf(stage.namespace) });
    assert.deepEqual(deniedCalls(stage.plane, gatewayUserOf(stage.namespace)), []);
    const manifests = await stage.helm.template(stage.namespace, on);
    const roles = rolesIn(manifests).filter(({ metadata }) => metadata.name.startsWith('drawbridge-gateway'));
    const held = new Set([...roles.flatMap((role) => rightsIn(rulesOf(role))), ...authenticationReads]);
    assert.deepEqual(
      [...new Set(calls.map(rightFor))].filter((right) => !held.has(right)),
      [],
    );
  });

  it('keeps the trust of its APIService in an upgrade, and stays available', async () => {
    const before = (await apiService()).spec;
    await stage.upgrade('own', on);
    const after = await apiService();
    assert.deepEqual(after.spec, before);
    assert.ok(after.status?.conditions?.some(({ type, status }) => type === 'Available' && status === 'True'));
  });

  /** Applies an APIService in a dry run: that of the chart, with changes. */
  const apply = async (who: Person, name: string, change: object = {}, metadata: object = {}): Promise<ApiAnswer> => {
    const [version, ...group] = name.split('.');
    const service = { namespace: stage.namespace, name: 'drawbridge-gateway', port: stage.kubelet.port };
    const spec = {
      group: group.join('.'),
      version,
      groupPriorityMinimum: 100,
      versionPriority: 10,
      service,
      ...change,
    };
    const object = {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name, ...metadata },
      spec,
    };
    const url = `/apis/apiregistration.k8s.io/v1/apiservices/${name}?dryRun=All&fieldManager=helm&force=true`;
    return who.call('APPLY', url, object);
  };
  /** Changes that only a thief of the token of access makes. */
  const forgeries = ({ service }: ApiService['spec']): readonly [change: object, metadata?: object][] => [
    [{ service: { ...service, name: 'attacker' } }],
    [{ service: { ...service, namespace: 'payments' } }],
    [{ groupPriorityMinimum: 20_000 }],
    [{ insecureSkipTLSVerify: true, caBundle: null }],
    [{ caBundle: Buffer.from(stage.plane.authority.certificate).toString('base64') }],
    [{}, { annotations: { 'cert-manager.io/inject-ca-from': 'payments/attacker' } }],
    [{}, { annotations: { 'cert-manager.io/inject-apiserver-ca': 'true' } }],
    [{}, { labels: { 'kube-aggregator.kubernetes.io/automanaged': 'true' } }],
    [{}, { finalizers: ['example.org/hold'] }],
  ];
  const isKept = async (tried: Promise<ApiAnswer>): Promise<void> => {
    const { status, body } = await tried;
    assert.equal(status, 403, JSON.stringify(body));
    assert.match((body as { message: string }).message, /TokenMisused/);
  };

  it('can change only caBundle of its APIService, and no other APIService', async () => {
    const thief = await accountUser(stage.plane, 'drawbridge-gateway');
    const patch = (change: object, url = apiServiceUrl): Promise<ApiAnswer> =>
      thief.call('PATCH', `${url}?dryRun=All`, change);
    const { service } = (await apiService()).spec;
    for (const change of [
      { spec: { service: { ...service, name: 'attacker' } } },
      { spec: { service: { ...service, namespace: 'payments' } } },
      { spec: { groupPriorityMinimum: 20_000 } },
      { spec: { versionPriority: 1 } },
      { spec: { caBundle: null, insecureSkipTLSVerify: true } },
      { metadata: { labels: { 'kube-aggregator.kubernetes.io/automanaged': 'true' } } },
      { metadata: { finalizers: ['example.org/hold'] } },
    ]) {
      await isKept(patch(change));
    }
    const caBundle = Buffer.from(stage.plane.authority.certificate).toString('base64');
    assert.equal((await patch({ spec: { caBundle } })).status, 200);
    assert.equal(
      (await patch({ spec: { caBundle } }, '/apis/apiregistration.k8s.io/v1/apiservices/v1.apps')).status,
      403,
    );
    assert.equal((await thief.call('DELETE', apiServiceUrl)).status, 403);
  });

  it('loses its APIService while it is scaled down, so that namespaces can be deleted, and gets it back', async () => {
    const before = (await apiService()).spec;
    const scale = (replicas: number) =>
      stage.plane.kubectl(['scale', '-n', stage.namespace, 'deployment/drawbridge-gateway', `--replicas=${replicas}`]);
    await scale(0);
    const isGone = async (): Promise<boolean> => (await stage.plane.probe(apiServiceUrl)).status === 404;
    await until('the leader to withdraw the APIService', isGone, { timeoutMs: 30_000 });
    const thief = await accountUser(stage.plane, 'drawbridge');
    assert.equal((await apply(thief, gatewayApiService)).status, 201, 'as the chart installs it');
    for (const [change, metadata] of forgeries(before)) await isKept(apply(thief, gatewayApiService, change, metadata));
    await stage.plane.kubectl(['create', 'namespace', 'meanwhile']);
    const removed = await stage.plane.kubectl(['delete', 'namespace', 'meanwhile', '--timeout=30s'], { reject: false });
    assert.equal(removed.code, 0, removed.stderr);
    await scale(2);
    const isAvailable = async (): Promise<boolean> =>
      (await apiService()).status?.conditions?.some(({ type, status }) => type === 'Available' && status === 'True') ===
      true;
    await until('the leader to restore the APIService', isAvailable, { timeoutMs: 60_000 });
    assert.deepEqual((await apiService()).spec, before);
    await stage.upgrade('own', on);
    assert.deepEqual((await apiService()).spec, before);
  });

  it('cannot be led elsewhere by a thief of the token of access', async () => {
    const thief = await accountUser(stage.plane, 'drawbridge');
    assert.equal((await apply(thief, 'v1.apps')).status, 403);
    assert.equal((await apply(thief, 'v1.example.org')).status, 403);
    const { spec } = await apiService();
    for (const [change, metadata] of forgeries(spec)) await isKept(apply(thief, gatewayApiService, change, metadata));
    assert.equal((await thief.call('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {})).status, 403);
  });

  const leaseUrl = (): string => `/apis/coordination.k8s.io/v1/namespaces/${stage.namespace}/leases`;
  const lease = (
    name: string,
    address = '10.0.0.1:9445',
    labels: object = { 'gateway.drawbridge.dev/replica': '' },
  ) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, labels, annotations: { 'gateway.drawbridge.dev/address': address } },
  });

  describe('AccessSessions', () => {
    const name = '6f0c7a52-3c38-4b53-9d0f-6d3f0b2f4c11';
    const url = () => `/apis/access.drawbridge.dev/v1alpha1/namespaces/${stage.payments}/accesssessions`;
    const owner = () => ({
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessRequest',
      name: request.metadata.name,
      uid: request.metadata.uid,
    });
    const session = (metadata: object = {}, spec: object = {}) => ({
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'AccessSession',
      metadata: { name, ownerReferences: [owner()], ...metadata },
      spec: {
        user: 'alice',
        grant: 'debug-access',
        request: { kind: 'ExecAccessRequest', name: request.metadata.name },
        pod: 'payments',
        stream: 'exec',
        tty: true,
        recording: 'Off',
        replica: 'one',
        startedAt: '2026-11-21T09:00:00Z',
        ...spec,
      },
    });
    const denies = ({ status, body }: ApiAnswer, code: RegExp, what: unknown): void => {
      assert.ok(status === 403 || status === 422, `${status} ${JSON.stringify([what, body])}`);
      assert.match((body as { message: string }).message, code, JSON.stringify(what));
    };

    it('can be created and changed by the gateway alone', async () => {
      denies(await stage.plane.call('POST', `${url()}?dryRun=All`, session()), /StatusReserved/, 'administrator');
      const gateway = await accountUser(stage.plane, 'drawbridge-gateway');
      // Without it, another replica would delete the object at once.
      assert.equal((await gateway.call('POST', leaseUrl(), lease('drawbridge-gateway-one'))).status, 201);
      assert.equal((await gateway.call('POST', url(), session())).status, 201);
      const held = { metadata: { finalizers: ['example.org/hold'] } };
      denies(await stage.plane.call('PATCH', `${url()}/${name}`, held), /StatusReserved/, held);
      denies(await gateway.call('PATCH', `${url()}/${name}`, held), /cannot patch resource/, held);
      assert.equal((await gateway.call('DELETE', `${leaseUrl()}/drawbridge-gateway-one`)).status, 200);
      const isGone = async (): Promise<boolean> => (await stage.plane.probe(`${url()}/${name}`)).status === 404;
      await until('another replica to delete it', isGone, { timeoutMs: 30_000 });
    });

    it('belong to their request alone', async () => {
      const gateway = await accountUser(stage.plane, 'drawbridge-gateway');
      const create = (object: object): Promise<ApiAnswer> => gateway.call('POST', `${url()}?dryRun=All`, object);
      for (const metadata of [
        { finalizers: ['example.org/hold'] },
        { labels: { a: 'b' } },
        { annotations: { a: 'b' } },
        { ownerReferences: [] },
        { ownerReferences: [{ ...owner(), name: 'other' }] },
        { ownerReferences: [{ ...owner(), kind: 'PodAccessRequest' }] },
        { ownerReferences: [{ ...owner(), controller: true }] },
        { ownerReferences: [owner(), { apiVersion: 'v1', kind: 'Pod', name: 'payments', uid: 'p-1' }] },
      ])
        denies(await create(session(metadata)), /ForeignHold/, metadata);
      denies(await create(session({ name: 'debug' })), /must be a UUID/, 'name');
      assert.equal((await create(session())).status, 201);
    });

    it('are for auditors, and for no user of an aggregated role', async () => {
      const may = async (user: string, ...asked: readonly string[]): Promise<string> =>
        (
          await stage.plane.kubectl(['auth', 'can-i', ...asked, `--as=${user}`, '-n', stage.payments], {
            reject: false,
          })
        ).stdout.trim();
      const bind = ['create', 'rolebinding', '-n', stage.payments];
      for (const role of ['edit', 'admin', 'view', 'drawbridge-session-auditor'])
        await stage.plane.kubectl([...bind, `bound-${role}`, `--clusterrole=${role}`, `--user=bound-${role}`]);
      const rights = [
        ['list', 'accesssessions.access.drawbridge.dev'],
        ['delete', 'accesssessions.access.drawbridge.dev'],
        ['get', 'sessions.gateway.drawbridge.dev', '--subresource=log'],
        ['get', 'recordings.gateway.drawbridge.dev', '--subresource=log'],
      ] as const;
      for (const right of rights) {
        for (const role of ['edit', 'admin', 'view'])
          assert.equal(await may(`bound-${role}`, ...right), 'no', `${role} ${right}`);
        assert.equal(await may('bound-drawbridge-session-auditor', ...right), 'yes', `${right}`);
      }
      assert.equal(await may('bound-drawbridge-session-auditor', 'create', rights[0][1]), 'no');
    });
  });

  it('writes only the Leases of its replicas', async () => {
    const thief = await accountUser(stage.plane, 'drawbridge-gateway');
    const url = leaseUrl();
    const post = (object: object): Promise<ApiAnswer> => thief.call('POST', `${url}?dryRun=All`, object);
    const tries: readonly [string, Promise<ApiAnswer>][] = [
      ['another name', post(lease('drawbridge-inventory'))],
      ['no label', post(lease('drawbridge-gateway-one', undefined, {}))],
      ...['metadata.internal:80', '10.0.0.1', '10.0.0.1:80/path', 'evil@10.0.0.1:80', '::1:80'].map(
        (address) => [address, post(lease('drawbridge-gateway-one', address))] as const,
      ),
      ['the leader of access', thief.call('PATCH', `${url}/drawbridge-access`, { spec: { holderIdentity: 'thief' } })],
      ['the leader of access', thief.call('DELETE', `${url}/drawbridge-access`)],
      ['the certificate', thief.call('DELETE', `${url}/drawbridge-gateway-own-certificate`)],
    ] as never;
    for (const [what, tried] of tries) {
      const { status, body } = await tried;
      assert.equal(status, 403, what);
      assert.match((body as { message: string }).message, /TokenMisused/, what);
    }
    for (const address of ['10.0.0.1:9445', '[fd00::1]:9445'])
      assert.equal((await post(lease('drawbridge-gateway-one', address))).status, 201, address);
  });

  describe('when it is uninstalled', () => {
    it('ends open sessions, and removes the APIService before all that answers for it', async () => {
      const { binaries, directory } = stage.plane;
      const args = [...via, 'exec', '-ti', request.status?.podName ?? '', '--', 'sh'];
      const env = { PATH: process.env['PATH'], HOME: directory, KUBECONFIG: stage.alice.kubeconfig, TERM: 'xterm' };
      const terminal = new Terminal(binaries.kubectl, args, env);
      try {
        await terminal.shows(/[$#] /);
        terminal.write('echo $((40+2))\n');
        await terminal.shows(/^42/m);
        const mark = stage.plane.auditLog.mark();
        const said = await stage.uninstall();
        assert.match(said, /release "drawbridge" uninstalled/, `${said}\n${await stage.kubelet.logs()}`);
        assert.equal((await stage.plane.kubectl(['get', 'accesssessions', '-A', '-o', 'name'])).stdout, '');
        await terminal.shows(/access ended at \d\d:\d\d UTC: (Revoked|Deleted)/);
        const deleted = stage.plane.auditLog
          .calls({ since: mark, verbs: ['delete'] })
          .filter(({ userAgent }) => /helm/i.test(userAgent))
          .map(({ resource, name }) => `${resource} ${name}`);
        const itsOwn = deleted.filter((one) => /gateway/.test(one));
        assert.equal(itsOwn[0], `apiservices ${gatewayApiService}`, deleted.join('\n'));
        for (const one of ['services', 'deployments', 'clusterrolebindings'])
          assert.ok(itsOwn.includes(`${one} drawbridge-gateway`), deleted.join('\n'));
      } finally {
        terminal.kill();
      }
    });

    it('leaves discovery whole, so that a namespace can be deleted at once', async () => {
      await stage.plane.kubectl(['create', 'namespace', 'short-lived']);
      const listed = await stage.plane.kubectl(['get', 'namespaces', '-o', 'name']);
      assert.match(listed.stdout, /namespace\/short-lived/);
      assert.equal(listed.stderr, '');
      const removed = await stage.plane.kubectl(['delete', 'namespace', 'short-lived', '--timeout=30s'], {
        reject: false,
      });
      assert.equal(removed.code, 0, removed.stderr);
      await until('the replicas to end', () => stage.kubelet.pods.length === 0, { timeoutMs: 45_000 });
    });
  });
});

/** By the Role of Kubernetes for aggregated API servers. */
const authenticationReads = ['get', 'list', 'watch'].map((verb) => `${verb} /configmaps`);
