import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../sandbox/wait.ts';
import { accessUrl, execRequest, podRequest } from '../../support/access-requests.ts';
import { AdmissionLoad } from '../../support/admission-load.ts';
import { deniedCalls } from '../../support/chart-manifests.ts';
import { type CertificateMode, ChartStage } from '../../support/chart-stage.ts';

const modes: readonly CertificateMode[] = ['secret', 'cert-manager'];

/** The mode `own` is the default, which `test/integration/chart/access-install.test.ts` installs. */
describe('the chart, installed by Helm', function () {
  this.timeout(180_000);
  let stage: ChartStage;
  /** Position in the API server's audit log at the last installation. */
  let mark = 0;

  before(async () => {
    stage = await ChartStage.open();
  });
  after(() => stage?.close());

  /** Runs an upgrade under 100 admissions a second, until all replicas are replaced. */
  const replacedUnderLoad = async (upgrade: () => Promise<void>): Promise<AdmissionLoad> => {
    const before = stage.kubelet.pods.map(({ name }) => name);
    const load = new AdmissionLoad(stage.plane, stage.payments, 50);
    await upgrade();
    const areGone = (): boolean => !stage.kubelet.pods.some(({ name }) => before.includes(name));
    await until(`${before} to be gone`, areGone, { timeoutMs: 60_000 });
    await stop(load);
    return load;
  };

  const stop = async (load: AdmissionLoad): Promise<void> => {
    await load.stop();
    console.log(`      ${load.sent * 2} admissions, ${load.failures.length} failed`);
    assert.deepEqual(load.failures, []);
  };

  const uninstall = async (): Promise<void> => {
    const url = accessUrl('ExecAccessRequest', stage.payments);
    const asked: number[] = [];
    let asking = true;
    const ask = async (): Promise<void> => {
      for (let n = 0; asking; n += 1) {
        asked.push((await stage.alice.call('POST', url, execRequest(`late-${n}`))).status);
        await sleep(20);
      }
    };
    const persistent = ask();
    const said = await stage.uninstall();
    asking = false;
    await persistent;
    assert.match(said, /release "drawbridge" uninstalled/, `${said}\n${await stage.kubelet.logs()}`);
    const admitted = asked.filter((status) => status === 201).length;
    console.log(`      asked ${asked.length} times meanwhile, admitted ${admitted}`);
    assert.ok(!asked.includes(500), `${asked}`);
    assert.deepEqual(await stage.granted(), []);
    // Without webhooks, any user may store a request, but the server does not grant it.
    await stage.deleteRequests();
    await stage.leftovers();
  };

  for (const mode of modes) {
    describe(`with certificates ${mode}`, () => {
      it('becomes ready with two replicas', async () => {
        mark = stage.plane.auditLog.mark();
        await stage.install(mode);
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
        assert.deepEqual(deniedCalls(stage.plane, stage.serverUser, mark), []);
      });

      it('keeps its webhooks in an upgrade, and grants continue', async () => {
        const called = await stage.webhooksAsCalled();
        assert.ok(called.flatMap(({ paths }) => paths).every((path) => !/\/[0-9a-f]{32}$/.test(path)));
        await stage.upgrade(mode);
        assert.deepEqual(await stage.webhooksAsCalled(), called, 'nobody has written them, not even for a moment');
        assert.equal((await stage.granted()).length, 3 + 2);
      });

      if (mode === 'secret') {
        it('loses no call of 100 admissions a second while all replicas are replaced', async () => {
          const load = await replacedUnderLoad(() => stage.upgrade(mode, { log: { level: 'debug', format: 'text' } }));
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
          await stop(load);
        });
      }

      it('changes to certificates that the server creates, and loses no call of 100 admissions a second meanwhile', () =>
        replacedUnderLoad(() => stage.upgrade('own')));

      if (mode === 'secret') it('denies new requests while it is uninstalled, and leaves no grant behind', uninstall);
    });
  }
});
