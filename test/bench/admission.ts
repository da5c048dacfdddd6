import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { percentile } from '../support/percentile.ts';
import { benchmark } from './support/command.ts';
import { type Figures, numberFrom } from './support/figures.ts';
import type { LoadOrder, LoadResult } from './support/load.ts';
import { accessGroup, type BenchStage, cpuMs } from './support/stage.ts';

/**
 * Sends mutate and validate reviews of PodAccessRequests in turn to the server's webhook port, over CONNECTIONS keep-alive connections for
 * SECONDS. In the same round, sends the same bytes to a bare node:https server that parses and allows them.
 */
const connections = numberFrom('CONNECTIONS', 16);
const seconds = numberFrom('SECONDS', 5);
const paths = ['mutate', 'validate'].map((verb) => `/${verb}-crds-wizardofoz-co-v1alpha1-podaccessrequest?timeout=3s`);
const groupVersion = { group: 'crds.wizardofoz.co', version: 'v1alpha1' };

let raw: { readonly process: ChildProcess; readonly port: number } | undefined;

await benchmark(
  `admission-${connections}`,
  async (stage) => {
    const { certFile, keyFile, port } = stage.server.installation;
    raw ??= await startRaw(certFile, keyFile);
    const floor = await measure(stage, raw.port, raw.process.pid ?? 0);
    const ours = await measure(stage, port, stage.server.pid);
    return {
      rawPerSecond: floor.perSecond,
      perSecond: ours.perSecond,
      ratio: ours.perSecond / floor.perSecond,
      rawPerCpuSecond: floor.perCpuSecond,
      perCpuSecond: ours.perCpuSecond,
      cpuRatio: ours.perCpuSecond / floor.perCpuSecond,
      rawP50Ms: floor.p50Ms,
      p50Ms: ours.p50Ms,
      rawP99Ms: floor.p99Ms,
      p99Ms: ours.p99Ms,
      wrong: ours.wrong,
    };
  },
  { rounds: 5 },
);

async function measure(stage: BenchStage, port: number, pid: number) {
  const order: LoadOrder = {
    port,
    ca: stage.plane.authority.certificate,
    connections,
    seconds,
    requests: paths.map((path) => ({ path, body: reviewIn(stage.namespace) })),
  };
  await load({ ...order, seconds: 1 });
  const before = await cpuMs(pid);
  const { answers, elapsedMs, latenciesMs, wrong } = await load(order);
  return {
    perSecond: (answers / elapsedMs) * 1000,
    perCpuSecond: (answers / ((await cpuMs(pid)) - before)) * 1000,
    p50Ms: percentile(latenciesMs, 0.5),
    p99Ms: percentile(latenciesMs, 0.99),
    wrong,
  } satisfies Figures;
}

async function load(order: LoadOrder): Promise<LoadResult> {
  const child = fork(fileURLToPath(new URL('./support/load.ts', import.meta.url)), { execArgv: ['--import', 'tsx'] });
  child.send(order);
  const [result] = (await once(child, 'message')) as [LoadResult];
  return result;
}

async function startRaw(certFile: string, keyFile: string) {
  const script = fileURLToPath(new URL('./support/raw-server.ts', import.meta.url));
  const child = fork(script, [certFile, keyFile], { execArgv: ['--import', 'tsx'] });
  const [port] = (await once(child, 'message')) as [number];
  return { process: child, port };
}

/** The review that the API server sends for a create by alice. */
function reviewIn(namespace: string): string {
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: '0df28fbd-5f5f-11e8-bc74-36e6bb280816',
      kind: { ...groupVersion, kind: 'PodAccessRequest' },
      resource: { ...groupVersion, resource: 'podaccessrequests' },
      requestKind: { ...groupVersion, kind: 'PodAccessRequest' },
      requestResource: { ...groupVersion, resource: 'podaccessrequests' },
      name: 'bench',
      namespace,
      operation: 'CREATE',
      userInfo: { username: 'alice', groups: ['devs', 'system:authenticated'] },
      object: {
        apiVersion: accessGroup,
        kind: 'PodAccessRequest',
        metadata: {
          name: 'bench',
          namespace,
          uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
          creationTimestamp: '2026-11-21T09:00:00Z',
          generation: 1,
          finalizers: ['access.drawbridge.dev/revoke'],
          managedFields: [
            {
              manager: 'kubectl-create',
              operation: 'Update',
              apiVersion: accessGroup,
              time: '2026-11-21T09:00:00Z',
              fieldsType: 'FieldsV1',
              fieldsV1: { 'f:spec': { '.': {}, 'f:duration': {}, 'f:templateName': {} } },
            },
          ],
        },
        spec: {
          templateName: 'instant',
          duration: '30m',
          requester: {
            username: 'alice',
            uid: '',
            groups: ['devs', 'system:authenticated'],
            time: '2026-11-21T09:00:00Z',
          },
        },
      },
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'kubectl-create' },
    },
  });
}
