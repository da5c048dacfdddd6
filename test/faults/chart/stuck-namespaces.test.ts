import assert from 'node:assert/strict';
import type { HostPod } from '../../../sandbox/chart/host-pod.ts';
import { until } from '../../../sandbox/wait.ts';
import { gatewayApiService } from '../../../src/api/gateway/names.ts';
import { inParallel } from '../../bench/support/api.ts';
import { ChartStage } from '../../support/chart-stage.ts';

const apiServiceUrl = `/apis/apiregistration.k8s.io/v1/apiservices/${gatewayApiService}`;
/** How long a namespace may stay after the last gateway hung, milliseconds. The leader waits two minutes of it. */
const longestMs = 300_000;
const count = 200;

describe(`${count} namespaces that are deleted while every gateway hangs`, function () {
  this.timeout(longestMs + 240_000);
  let stage: ChartStage;

  before(async () => {
    stage = await ChartStage.open();
    await stage.install('own', { features: { gateway: true } });
    await stage.kubelet.switchService('drawbridge-gateway');
    await until('the API server to reach the gateway', isAvailable, { timeoutMs: 60_000 });
  });
  after(async () => {
    signal('SIGCONT');
    await stage?.close();
  });

  const gateways = (): HostPod[] => stage?.kubelet.pods.filter(({ name }) => name.includes('gateway')) ?? [];
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => {
    for (const { pid } of gateways()) if (pid !== undefined) process.kill(pid, name);
  };
  const condition = async (): Promise<string | undefined> => {
    const { body } = await stage.plane.probe(apiServiceUrl);
    const { status } = body as { status?: { conditions?: readonly { type: string; status: string }[] } };
    return status?.conditions?.find(({ type }) => type === 'Available')?.status;
  };
  const isAvailable = async (): Promise<boolean> => (await condition()) === 'True';
  const namespaces = async (): Promise<{ metadata: { name: string }; status: object }[]> => {
    const { body } = await stage.plane.probe('/api/v1/namespaces?labelSelector=stuck');
    return (body as { items: { metadata: { name: string }; status: object }[] }).items;
  };
  const forEach = (work: (name: string) => Promise<unknown>) => inParallel(count, (i) => work(`stuck-${i}`), 8);

  it('wait for the leader of access to withdraw the APIService, and then all go, and the gateway comes back', async () => {
    await forEach(async (name) => {
      const metadata = { name, labels: { stuck: '' } };
      assert.equal((await stage.plane.call('POST', '/api/v1/namespaces', { metadata })).status, 201);
      const object = { metadata: { name: 'content' } };
      assert.equal((await stage.plane.call('POST', `/api/v1/namespaces/${name}/configmaps`, object)).status, 201);
    });
    signal('SIGSTOP');
    const hungMs = performance.now();
    const seconds = (): number => Math.round((performance.now() - hungMs) / 1000);
    await until('the API server to miss the gateway', async () => (await condition()) === 'False', {
      timeoutMs: 60_000,
    });
    await forEach((name) => stage.plane.call('DELETE', `/api/v1/namespaces/${name}`));
    const areStuck = async (): Promise<boolean> => {
      const found = await namespaces();
      const stuck = found.filter(({ status }) => JSON.stringify(status).includes('DiscoveryFailed'));
      return found.length === count && stuck.length > 0;
    };
    await until('the namespaces to be stuck', areStuck, { timeoutMs: 60_000 });
    const isWithdrawn = async (): Promise<boolean> => (await stage.plane.probe(apiServiceUrl)).status === 404;
    await until('the leader to withdraw the APIService', isWithdrawn, { timeoutMs: 180_000, everyMs: 500 });
    const withdrawn = seconds();
    await until('the namespaces to go', async () => (await namespaces()).length === 0, {
      timeoutMs: longestMs,
      everyMs: 500,
    });
    const gone = seconds();
    console.log(`      withdrawn ${withdrawn} s after the gateways hung, all ${count} gone after ${gone} s`);
    assert.ok(gone * 1000 <= longestMs, `${gone} s`);
    signal('SIGCONT');
    await until('the leader to restore the APIService', isAvailable, { timeoutMs: 60_000 });
  });
});
