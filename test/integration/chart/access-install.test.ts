import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chart } from '../../../sandbox/chart/helm.ts';
import { until } from '../../../sandbox/wait.ts';
import { headNames } from '../../../src/audit/head.ts';
import { accessUrl, execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { deniedCalls, type Rule, rightFor, rightsIn, serverRightsIn } from '../../support/chart-manifests.ts';
import { ChartStage } from '../../support/chart-stage.ts';

const crdUrl = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podaccessrequests.crds.wizardofoz.co';
const keySecrets = '/api/v1/namespaces/drawbridge-system/secrets';
const keySecretName = headNames.access.keys;

const grantedByGrants: readonly Rule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
  { apiGroups: ['gateway.drawbridge.dev'], resources: ['grants/proxy'], verbs: ['get', 'create'] },
];

/** Permissions that need a fault, more time, or a kind that is not installed here, and where the server uses them. */
const usedElsewhere: Readonly<Record<string, string>> = {
  // Server-side apply needs this permission too, but the audit log names only patch.
  'create /configmaps': '../access/audit-journal.test.ts',
  // Votes about the review of an emergency whose request is gone.
  'delete access.drawbridge.dev/accessvotes': '../../unit/access/lifecycle/emergencies.test.ts',
  'get crds.wizardofoz.co/execaccessrequests': '../access/janitor.test.ts',
  'get crds.wizardofoz.co/podaccessrequests': '../access/janitor.test.ts',
  'get /serviceaccounts': '../access/service-selectors.test.ts',
  'get rbac.authorization.k8s.io/rolebindings': '../../faults/access/crash-points.test.ts',
  'get rbac.authorization.k8s.io/roles': '../../faults/access/crash-points.test.ts',
  'patch rbac.authorization.k8s.io/rolebindings': '../access/expiry.test.ts',
  'patch /secrets': '../../faults/access/own-certificates.test.ts',
  'watch argoproj.io/rollouts': '../access/targets.test.ts',
};

describe('the chart, installed by Helm', function () {
  this.timeout(180_000);
  let stage: ChartStage;

  before(async () => {
    stage = await ChartStage.open();
  });
  after(() => stage?.close());

  it('rejects audit keys from before the first start, and creates its own once they are deleted', async () => {
    const secret = { metadata: { name: keySecretName }, data: { current: randomBytes(32).toString('base64') } };
    const { body } = await stage.plane.call('POST', keySecrets, secret);
    const premade = (body as StoredRequest).metadata.uid;
    const isRefused = async (): Promise<boolean> => {
      const asked = stage.kubelet.pods.map((pod) => fetch(`http://127.0.0.1:${pod.port('health')}/readyz`));
      const answers = await Promise.all(asked.map(async (answer) => (await answer).text())).catch(() => []);
      return answers.length === 2 && answers.every((text) => /audit-keys.*nothing proves that this/.test(text));
    };
    const refused = async (): Promise<void> => {
      await until('both replicas to refuse the keys', isRefused, { timeoutMs: 60_000 });
      await stage.plane.call('DELETE', `${keySecrets}/${keySecretName}`);
    };
    await Promise.all([stage.install('own'), refused()]);
    const made = (await stage.plane.call('GET', `${keySecrets}/${keySecretName}`)).body as StoredRequest;
    assert.notEqual(made.metadata.uid, premade);
    assert.equal(stage.kubelet.pods.filter(({ endpoint }) => endpoint).length, 2);
  });

  it('grants access with the permissions of its own ServiceAccount', async () => {
    const pod = await stage.createReady(stage.alice, podRequest('pod'));
    const exec = await stage.createReady(stage.alice, execRequest('exec'));
    for (const { status } of [pod, exec]) {
      assert.equal(await stage.alice.mayExec(stage.payments, status?.podName ?? ''), true);
    }
    const refused = await stage.bob.call('POST', accessUrl('PodAccessRequest', stage.payments), podRequest('no'));
    assert.equal(refused.status, 403, JSON.stringify(refused.body));
    assert.deepEqual(deniedCalls(stage.plane, stage.serverUser), []);
  });

  it('has no permission that it neither uses nor grants', async () => {
    await useTheRest();
    const held = serverRightsIn(await stage.helm.template(stage.namespace, { certificates: { mode: 'own' } }));
    const usedNow = (): Set<string> => new Set(stage.plane.auditLog.calls({ user: stage.serverUser }).map(rightFor));
    // The server writes the count of an Event only after 10 s.
    const late = 'patch events.k8s.io/events';
    await until(late, () => usedNow().has(late), { timeoutMs: 30_000 });
    const used = usedNow();
    const handedOut = new Set(rightsIn(grantedByGrants));
    for (const [right, file] of Object.entries(usedElsewhere)) {
      assert.ok(held.includes(right), right);
      assert.ok(existsSync(join(import.meta.dirname, file)), file);
    }
    const idle = held.filter((right) => !used.has(right) && !handedOut.has(right) && !(right in usedElsewhere));
    assert.deepEqual(idle, []);
    assert.deepEqual(
      [...used].filter((right) => !held.includes(right)),
      [],
    );
  });

  it('upgrades with its CRDs, and grants continue', async () => {
    const called = await stage.webhooksAsCalled();
    const newer = await mkdtemp(join(tmpdir(), 'drawbridge-chart-'));
    try {
      await cp(chart, newer, { recursive: true });
      const file = join(newer, 'files/crds/podaccessrequests.yaml');
      const crd = await readFile(file, 'utf8');
      await writeFile(
        file,
        crd.replace('    plural: podaccessrequests', '    shortNames: [par]\n    plural: podaccessrequests'),
      );
      await stage.upgrade('own', {}, newer);
    } finally {
      await rm(newer, { recursive: true });
    }
    const { body } = await stage.plane.probe(crdUrl);
    assert.deepEqual((body as { spec: { names: { shortNames?: string[] } } }).spec.names.shortNames, ['par']);
    await stage.upgrade('own');
    assert.deepEqual(await stage.webhooksAsCalled(), called, 'nobody has written them, not even for a moment');
    assert.equal((await stage.granted()).length, 3 + 2);
  });

  it('refuses namespaces that do not exist, or that lack one with open access', async () => {
    await assert.rejects(
      stage.upgrade('own', { namespaces: ['payments', 'orders'] }),
      /namespaces: orders does not exist/,
    );
    await stage.plane.kubectl(['create', 'namespace', 'orders']);
    await assert.rejects(
      stage.upgrade('own', { namespaces: ['orders'] }),
      /namespaces: access is open in payments, and the server could no longer end it there; end it first/,
    );
    assert.equal((await stage.granted()).length, 3 + 2);
  });

  it('shows a grant that it may not close, and closes it once it may', async () => {
    const url = `${accessUrl('PodAccessRequest', stage.payments)}/unclosed`;
    await stage.createReady(stage.alice, podRequest('unclosed'));
    const stored = async (): Promise<StoredRequest> => (await stage.plane.probe(url)).body as StoredRequest;
    const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
    const { body } = await stage.plane.call('GET', `${bindings}/drawbridge-grants`);
    const { roleRef, subjects } = body as { roleRef: unknown; subjects: unknown };
    await stage.plane.call('DELETE', `${bindings}/drawbridge-grants`);
    await stage.alice.call('PATCH', url, { spec: { revoked: true } });
    const isShown = async (): Promise<boolean> =>
      (await stored()).status?.conditions?.find(({ type }) => type === 'Ready')?.reason === 'ResourceRefused';
    await until('its condition Ready to say so', isShown, { timeoutMs: 30_000 });

    await stage.plane.call('POST', bindings, { metadata: { name: 'drawbridge-grants' }, roleRef, subjects });
    const isGone = async (): Promise<boolean> => (await stage.plane.probe(url)).status === 404;
    await until('the grant to be closed', isGone, { timeoutMs: 60_000 });
    await stage.upgrade('own');
    assert.equal((await stage.granted()).length, 3 + 2);
  });

  it('revokes everything before it is uninstalled, and leaves no grant behind', async () => {
    const said = await stage.uninstall();
    assert.match(said, /release "drawbridge" uninstalled/, `${said}\n${await stage.kubelet.logs()}`);
    const [job] = stage.kubelet.all.filter(({ name }) => name.startsWith('drawbridge-revoke-all')).slice(-1);
    assert.match((await job?.log()) ?? '', /requests? and \d+ objects? of grants remain[\s\S]*nothing is open\n$/);
    assert.deepEqual(await stage.granted(), []);
  });

  /** Makes the calls that the other tests of this file do not cause. Runs both kinds concurrently, because each takes several seconds. */
  const useTheRest = async (): Promise<void> => {
    await Promise.all([useTheRestOf('PodAccessRequest', podRequest), useTheRestOf('ExecAccessRequest', execRequest)]);
  };

  const useTheRestOf = async (kind: string, request: typeof podRequest): Promise<void> => {
    const { alice, payments, plane } = stage;
    const url = accessUrl(kind, payments);
    const gone = (name: string): Promise<unknown> =>
      until(`${name} to be gone`, async () => (await plane.probe(`${url}/${name}`)).status === 404, {
        timeoutMs: 30_000,
      });

    const { status } = await stage.createReady(alice, request('revoked'));
    const exec = `/api/v1/namespaces/${payments}/pods/${status?.podName}/exec?command=true&stdout=true`;
    // The second time increments the count of its Event.
    for (let n = 0; n < 2; n += 1) await alice.call('POST', exec);
    await alice.call('PATCH', `${url}/revoked`, { spec: { revoked: true } });

    const forced = await stage.createReady(alice, request('forced'));
    await alice.call('DELETE', `${url}/forced?propagationPolicy=Orphan`);
    await plane.call('PATCH', `${url}/forced`, { metadata: { finalizers: null } });

    const missing = await alice.call('POST', url, request('missing', { templateName: 'missing' }));
    assert.equal(missing.status, 404, JSON.stringify(missing.body));
    await gone('revoked');
    await gone('forced');
    await until('its children to be gone', async () => (await stage.children(forced.metadata.uid)).length === 0, {
      timeoutMs: 30_000,
    });
  };
});
