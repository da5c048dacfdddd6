import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { until } from '../../../sandbox/wait.ts';
import { childNameOf } from '../../../src/api/access/names.ts';
import { gatewayApiService, gatewayGroup, gatewayUserOf, gatewayVersion } from '../../../src/api/gateway/names.ts';
import { execRequest, type StoredRequest } from '../../support/access-requests.ts';
import { rightFor, rightsIn, rolesIn, rulesOf } from '../../support/chart-manifests.ts';
import { ChartStage } from '../../support/chart-stage.ts';
import { accountUser } from '../../support/server-token.ts';
import { Terminal } from '../../support/terminal.ts';

const on = { features: { gateway: true } };
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

  before(async () => {
    stage = await ChartStage.open();
  });
  after(() => stage?.close());

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

  it('opens sessions of a template that says so, with the permissions of its own ServiceAccount', async () => {
    const template = {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessTemplate',
      metadata: { name: 'payments-gateway', namespace: stage.payments },
      spec: {
        accessConfig: {
          allowedGroups: ['devs'],
          defaultDuration: '30m',
          maxDuration: '2h',
          session: { via: 'Gateway' },
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
    const direct = await alice('exec', '-n', stage.payments, pod, '--', 'true');
    assert.notEqual(direct.code, 0);
    const bob = await stage.bob.kubectl([...via, 'exec', pod, '--', 'true'], { reject: false });
    assert.match(bob.stderr, /Forbidden/);
  });

  it('makes no call that its permissions do not allow', async () => {
    const calls = stage.plane.auditLog.calls({ user: gatewayUserOf(stage.namespace) });
    assert.deepEqual(
      calls.filter(({ code }) => code === 403).map(({ verb, uri }) => `${verb} ${uri}`),
      [],
    );
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
      const { status, body } = await patch(change);
      assert.equal(status, 403, JSON.stringify([change, body]));
      assert.match((body as { message: string }).message, /ApiServiceKept/);
    }
    const caBundle = Buffer.from(stage.plane.authority.certificate).toString('base64');
    assert.equal((await patch({ spec: { caBundle } })).status, 200);
    assert.equal(
      (await patch({ spec: { caBundle } }, '/apis/apiregistration.k8s.io/v1/apiservices/v1.apps')).status,
      403,
    );
    assert.equal((await thief.call('DELETE', apiServiceUrl)).status, 403);
  });

  it('ends open sessions when it is uninstalled, and removes the APIService before all that answers for it', async () => {
    const { binaries, directory } = stage.plane;
    const args = [...via, 'exec', '-ti', request.status?.podName ?? '', '--', 'sh'];
    const env = { PATH: process.env['PATH'], HOME: directory, KUBECONFIG: stage.alice.kubeconfig, TERM: 'xterm' };
    const terminal = new Terminal(binaries.kubectl, args, env);
    try {
      terminal.write('echo $((40+2))\n');
      await terminal.shows(/^(\$ )?42/m);
      const mark = stage.plane.auditLog.mark();
      const said = await stage.uninstall();
      assert.match(said, /release "drawbridge" uninstalled/, `${said}\n${await stage.kubelet.logs()}`);
      assert.match(await terminal.shows(/access ended at .*/), /access ended at \d\d:\d\d UTC: (Revoked|Deleted)/);
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

/** By the Role of Kubernetes for aggregated API servers. */
const authenticationReads = ['get', 'list', 'watch'].map((verb) => `${verb} /configmaps`);
