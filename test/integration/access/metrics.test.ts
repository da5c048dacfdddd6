import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('the metrics of a server', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open({ fresh: true });
    const short = await stage.createReady(stage.alice, podRequest('short', { duration: '10s' }));
    await stage.createReady(stage.alice, podRequest('own', { duration: '10m' }));
    await stage.createOk(stage.alice, execRequest('denied', { targetPod: 'nobody', duration: '10m' }));
    await stage.create(stage.bob, podRequest('outsider'));
    await stage.gone(short);
  });
  after(() => stage?.close());

  const lines = async (): Promise<string[]> => {
    const answer = await fetch(`http://127.0.0.1:${stage.server.metricsPort}/metrics`);
    return (await answer.text()).split('\n');
  };

  /** The value of a series with this name and at least these labels. */
  const value = async (name: string, labels: Record<string, string> = {}): Promise<number | undefined> => {
    const wanted = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    const found = (await lines()).find((line) => {
      return (
        line.startsWith(name) && /^[{ ]/.test(line.slice(name.length)) && wanted.every((one) => line.includes(one))
      );
    });
    return found === undefined ? undefined : Number(found.slice(found.lastIndexOf(' ') + 1));
  };

  const kind = 'PodAccessRequest';
  const template = 'payments-shell';
  const expected: [string, Record<string, string>, number][] = [
    ['drawbridge_grants_past_expiry', { kind }, 0],
    ['drawbridge_expiry_lag_seconds_count', { kind }, 1],
    ['drawbridge_drift_objects', { kind: 'RoleBinding', drift: 'orphaned' }, 0],
    ['drawbridge_drift_objects', { kind: 'RoleBinding', drift: 'missing' }, 0],
    ['drawbridge_admission_review_duration_seconds_count', { allowed: 'false', code: 'NotEligible' }, 1],
    ['drawbridge_admission_review_duration_seconds_count', { webhook: 'vpodaccessrequest.kb.io', allowed: 'true' }, 2],
    ['oz_access_request_created_total', { kind, template, user: 'redacted' }, 2],
    ['oz_access_request_ready_seconds_count', { kind, template }, 2],
    ['oz_access_request_requested_duration_seconds_sum', { kind, template }, 610],
    ['oz_access_request_terminated_total', { kind, template, reason: 'expired' }, 1],
    ['oz_access_request_condition_errors_total', { kind: 'ExecAccessRequest' }, 1],
    ['oz_access_requests', { kind, template, ready: 'true', user: 'redacted' }, 1],
    ['oz_access_templates', { name: template, ready: 'true' }, 1],
  ];
  for (const [name, labels, figure] of expected) {
    it(`show ${name} ${JSON.stringify(labels)}`, async () => {
      const all = { ...labels, ...(name.startsWith('oz_') ? { namespace: stage.namespace } : {}) };
      const read = async (): Promise<boolean> => (await value(name, all)) === figure;
      await until(`${name} to be ${figure}, not ${await value(name, all)}`, read, { timeoutMs: 30_000 });
    });
  }

  it('count connections to pods', async () => {
    const own = await stage.read(kind, 'own');
    await stage.alice.kubectl(['exec', '-n', stage.namespace, own?.status?.podName ?? '', '--', 'true']);
    assert.equal(await value('oz_pod_exec_total', { namespace: stage.namespace, subresource: 'exec' }), 1);
  });

  it('count changes by other clients', async () => {
    const [child] = await stage.children((await stage.read(kind, 'own'))?.metadata.uid ?? '');
    await stage.kubectl('delete', 'rolebinding', child?.name ?? '');
    const missing = async () =>
      (await value('drawbridge_drift_objects', { kind: 'RoleBinding', drift: 'missing' })) === 1;
    await until('the missing RoleBinding to be counted', missing, { timeoutMs: 30_000 });
  });

  it('name no user', async () => assert.doesNotMatch((await lines()).join('\n'), /alice|bob|carol/));
});
