import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chart } from '../../../sandbox/chart/helm.ts';
import { until } from '../../../sandbox/wait.ts';
import { keySecretName } from '../../../src/access/signing/key-secret.ts';
import { accessUrl, execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AdmissionLoad } from '../../support/admission-load.ts';
import { type Rule, rightFor, rightsIn, serverRightsIn } from '../../support/chart-manifests.ts';
import { type CertificateMode, ChartStage } from '../../support/chart-stage.ts';

const crdUrl = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podaccessrequests.crds.wizardofoz.co';
const keySecrets = '/api/v1/namespaces/drawbridge-system/secrets';
const modes: readonly CertificateMode[] = ['own', 'secret', 'cert-manager'];

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
  'patch /secrets': '../certificates/own-certificates.test.ts',
  'watch argoproj.io/rollouts': '../access/targets.test.ts',
};

interface CalledWebhooks {
  readonly metadata: { readonly name: string; readonly generation: number };
  readonly webhooks: readonly { readonly clientConfig: { readonly service: { readonly path: string } } }[];
}

describe('the chart, installed by Helm', function () {
  this.timeout(180_000);
  let stage: ChartStage;
  /** Position in the API server's audit log at the last installation. */
  let mark = 0;

  before(async () => {
    stage = await ChartStage.open();
  });
  after(() => stage?.close());

  it('rejects signing keys from before the first start, and creates its own once they are deleted', async () => {
    const secret = { metadata: { name: keySecretName }, data: { current: randomBytes(32).toString('base64') } };
    const { body } = await stage.plane.call('POST', keySecrets, secret);
    const premade = (body as StoredRequest).metadata.uid;
    const isRefused = async (): Promise<boolean> => {
      const asked = stage.kubelet.pods.map((pod) => fetch(`http://127.0.0.1:${pod.port('health')}/readyz`));
      const answers = await Promise.all(asked.map(async (answer) => (await answer).text())).catch(() => []);
      return answers.length === 2 && answers.every((text) => /signing-keys.*nothing proves that this/.test(text));
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

  /** Each webhook configuration with how often its content was changed, and the paths that the API server calls. */
  const webhooksAsCalled = async (): Promise<{ name: string; generation: number; paths: string[] }[]> => {
    const kinds = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
    const lists = kinds.map(async (plural) => {
      const url = `/apis/admissionregistration.k8s.io/v1/${plural}?labelSelector=app.kubernetes.io/name=drawbridge`;
      return ((await stage.plane.probe(url)).body as { items: CalledWebhooks[] }).items;
    });
    return (await Promise.all(lists)).flat().map(({ metadata: { name, generation }, webhooks }) => ({
      name,
      generation,
      paths: webhooks.map(({ clientConfig }) => clientConfig.service.path),
    }));
  };

  for (const mode of modes) {
    describe(`with certificates ${mode}`, () => {
      it('becomes ready with two replicas', async () => {
        mark = stage.plane.auditLog.mark();
        // The first one exists already.
        await (mode === 'own' ? stage.upgrade(mode) : stage.install(mode));
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
        assert.deepEqual(forbidden(), []);
      });

      if (mode === 'own') {
        it('has no permission that it neither uses nor grants', async () => {
          await useTheRest();
          const held = serverRightsIn(await stage.helm.template(stage.namespace, { certificates: { mode } }));
          const usedNow = (): Set<string> =>
            new Set(stage.plane.auditLog.calls({ user: stage.serverUser }).map(rightFor));
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
      }

      it('upgrades with its CRDs, and grants continue', async () => {
        const called = await webhooksAsCalled();
        assert.equal(
          called.flatMap(({ paths }) => paths).every((path) => /\/[0-9a-f]{32}$/.test(path)),
          mode === 'own',
        );
        const newer = await mkdtemp(join(tmpdir(), 'drawbridge-chart-'));
        try {
          await cp(chart, newer, { recursive: true });
          const file = join(newer, 'files/crds/podaccessrequests.yaml');
          const crd = await readFile(file, 'utf8');
          await writeFile(
            file,
            crd.replace('    plural: podaccessrequests', '    shortNames: [par]\n    plural: podaccessrequests'),
          );
          await stage.upgrade(mode, {}, newer);
        } finally {
          await rm(newer, { recursive: true });
        }
        const { body } = await stage.plane.probe(crdUrl);
        assert.deepEqual((body as { spec: { names: { shortNames?: string[] } } }).spec.names.shortNames, ['par']);
        await stage.upgrade(mode);
        assert.deepEqual(await webhooksAsCalled(), called, 'nobody has written them, not even for a moment');
        assert.equal((await stage.granted()).length, 3 + 2);
      });

      if (mode === 'secret') {
        it('loses no call of 100 admissions a second while all replicas are replaced', async () => {
          const before = stage.kubelet.pods.map(({ name }) => name);
          const load = new AdmissionLoad(stage.plane, stage.payments, 50);
          await stage.upgrade(mode, { log: { level: 'debug', format: 'text' } });
          await podsGone(before);
          await load.stop();
          console.log(`      ${load.sent * 2} admissions, ${load.failures.length} failed`);
          assert.deepEqual(load.failures, []);
          assert.ok(load.sent > 200, `${load.sent} sent`);
        });

        it('loses no call of 100 admissions a second while the certificate is renewed', async () => {
          const load = new AdmissionLoad(stage.plane, stage.payments, 50);
          const more = (count: number): Promise<unknown> => {
            const enough = load.sent + count;
            return until(`${count} calls more`, () => load.sent >= enough, { timeoutMs: 30_000 });
          };
          await more(50);
          await stage.renewCertificate();
          for (const pod of stage.kubelet.pods) {
            const hasReloaded = async (): Promise<boolean> => /serving certificate reloaded/.test(await pod.log());
            await until(`${pod.name} to serve with the new certificate`, hasReloaded, { timeoutMs: 15_000 });
          }
          await more(100);
          await load.stop();
          console.log(`      ${load.sent * 2} admissions, ${load.failures.length} failed`);
          assert.deepEqual(load.failures, []);
        });
      }

      if (mode !== 'own') {
        it('changes to certificates that the server creates, and loses no call of 100 admissions a second meanwhile', async () => {
          const before = stage.kubelet.pods.map(({ name }) => name);
          const load = new AdmissionLoad(stage.plane, stage.payments, 50);
          await stage.upgrade('own');
          await podsGone(before);
          await load.stop();
          console.log(`      ${load.sent * 2} admissions, ${load.failures.length} failed`);
          assert.deepEqual(load.failures, []);
        });
      }

      it('revokes everything before it is uninstalled, denies new requests meanwhile, and leaves no grant behind', async () => {
        const asked: number[] = [];
        let asking = true;
        const ask = async (): Promise<void> => {
          for (let n = 0; asking && mode === 'secret'; n += 1) {
            const { status } = await stage.alice.call(
              'POST',
              accessUrl('ExecAccessRequest', stage.payments),
              execRequest(`late-${n}`),
            );
            asked.push(status);
            await sleep(20);
          }
        };
        const persistent = ask();
        const said = await stage.uninstall();
        asking = false;
        await persistent;
        assert.match(said, /release "drawbridge" uninstalled/, `${said}\n${await stage.kubelet.logs()}`);
        if (mode === 'secret') {
          const admitted = asked.filter((status) => status === 201).length;
          console.log(`      asked ${asked.length} times meanwhile, admitted ${admitted}`);
        }

        assert.ok(!asked.includes(500), `${asked}`);
        const [job] = stage.kubelet.all.filter(({ name }) => name.startsWith('drawbridge-revoke-all')).slice(-1);
        assert.match((await job?.log()) ?? '', /requests and \d+ objects of grants remain[\s\S]*nothing is open\n$/);
        assert.deepEqual(await stage.granted(), []);
        // Without webhooks, any user may store a request, but the server does not grant it.
        await stage.deleteRequests();
        await stage.leftovers();
      });
    });
  }

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

  const forbidden = (): string[] =>
    stage.plane.auditLog
      .calls({ user: stage.serverUser, since: mark })
      .filter(({ code }) => code === 403)
      .map(({ verb, uri }) => `${verb} ${uri}`);

  const podsGone = (names: readonly string[]): Promise<unknown> =>
    until(`${names} to be gone`, () => !stage.kubelet.pods.some(({ name }) => names.includes(name)), {
      timeoutMs: 60_000,
    });
});
