import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { AccessPodMode } from '../../src/access/builders/plan.ts';
import { planPodAccess } from '../../src/access/builders/pod-access.ts';
import { runs } from '../support/runs.ts';
import { planInput } from './plan.ts';

/** Mostly harmless, because otherwise the builder would reject almost every pod. */
const rarely = (dangerous: readonly unknown[], harmless: readonly unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...harmless) },
    { weight: 1, arbitrary: fc.constantFrom(...dangerous) },
  );

/** Containers, volumes, and contexts as an attacker would write them, valid and invalid. */
const context = fc.record(
  {
    privileged: rarely([true, 'true', 1], [false, null]),
    procMount: rarely(['Unmasked'], ['Default']),
    capabilities: rarely([{ add: ['CHOWN', 'SYS_ADMIN'] }, { add: ['ALL'] }, { add: [7] }], [{ add: ['CHOWN'] }, {}]),
    windowsOptions: rarely([{ hostProcess: true }], [{ hostProcess: false }]),
    seccompProfile: rarely([{ type: 'Unconfined' }], [{ type: 'RuntimeDefault' }]),
    sysctls: rarely([[{ name: 'kernel.msgmax' }]], [[{ name: 'net.ipv4.tcp_syncookies' }], []]),
  },
  { requiredKeys: [], noNullPrototype: true },
);
const container = fc.record(
  {
    name: fc.constantFrom('app', 'b'),
    image: fc.constant('a:1'),
    securityContext: context,
    livenessProbe: rarely([{ httpGet: { host: 'db' } }], [{ httpGet: { host: '' } }]),
    lifecycle: rarely([{ preStop: { tcpSocket: { host: 'db' } } }], [{ preStop: { exec: {} } }]),
    ports: rarely([[{ hostPort: 80 }], [{}, { hostPort: '80' }]], [[{ hostPort: 0 }], []]),
  },
  { requiredKeys: ['name'], noNullPrototype: true },
);
const volume = rarely(
  [
    { name: 'h', hostPath: { path: '/' } },
    { name: 'h', hostPath: {} },
  ],
  [{ name: 'tmp', emptyDir: {} }, { hostPath: null }],
);
const podSpec = fc.record(
  {
    containers: fc.array(container, { minLength: 1, maxLength: 2 }),
    initContainers: fc.array(container, { maxLength: 1 }),
    volumes: fc.array(volume, { maxLength: 2 }),
    securityContext: context,
    hostNetwork: rarely([true], [false]),
    hostPID: rarely([true], [false]),
    hostIPC: rarely([true], [false]),
    nodeName: rarely(['node-1', 'node-2'], ['']),
    serviceAccountName: rarely(['admin'], ['', 'web']),
    serviceAccount: rarely(['admin'], ['', 'web']),
  },
  { requiredKeys: ['containers'], noNullPrototype: true },
);
const path = fc.constantFrom(
  '/spec',
  '/spec/containers',
  '/spec/containers/0',
  '/spec/containers/-',
  '/spec/containers/0/securityContext',
  '/spec/containers/0/securityContext/privileged',
  '/spec/containers/0/securityContext/capabilities/add/0',
  '/spec/containers/0/ports',
  '/spec/initContainers',
  '/spec/initContainers/0',
  '/spec/volumes',
  '/spec/volumes/-',
  '/spec/volumes/0',
  '/spec/securityContext',
  '/spec/hostNetwork',
  '/spec/hostPID',
  '/spec/nodeName',
  '/spec/serviceAccountName',
  '/spec/serviceAccount',
  '/metadata/annotations',
  '/metadata/spec',
);
const value = fc.oneof(
  fc.constantFrom<unknown>(true, 'admin', 'node-2', null, 'SYS_ADMIN', {}, []),
  podSpec,
  container,
  fc.array(container, { minLength: 1, maxLength: 2 }),
  context,
  volume,
  fc.array(volume, { maxLength: 2 }),
);
const operation = fc.record({
  op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy'),
  path,
  from: path,
  value,
});

const modes = fc.constantFrom<AccessPodMode>('confined', 'oz');

type Json = Readonly<Record<string, unknown>>;
/** The objects in a list field. Other values are skipped, because the API server rejects them too. */
const list = (object: unknown, field: string): Json[] => {
  const value = (object as Json)[field];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : [];
};
const at = (object: unknown, ...fields: string[]): unknown =>
  fields.reduce((value, field) => (value as Json | null | undefined)?.[field], object);
const on = (value: unknown): boolean => Boolean(value);

/** Fields that an access pod must never have: a second, independent definition. */
function escapes(spec: Json, account: string): string[] {
  const found: string[] = [];
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC', 'nodeName']) if (on(spec[field])) found.push(field);
  if ((spec['serviceAccountName'] || spec['serviceAccount'] || 'default') !== account) found.push('account');
  if (list(spec, 'volumes').some((each) => on(each['hostPath']))) found.push('hostPath');
  const containers = [...list(spec, 'containers'), ...list(spec, 'initContainers')];
  if (containers.some((each) => list(each, 'ports').some((port) => on(port['hostPort'])))) found.push('hostPort');
  if (containers.some((each) => on(at(each, 'livenessProbe', 'httpGet', 'host')))) found.push('probe');
  if (containers.some((each) => on(at(each, 'lifecycle', 'preStop', 'tcpSocket', 'host')))) found.push('hook');
  for (const context of containers.map((each) => at(each, 'securityContext'))) {
    if (on(at(context, 'privileged'))) found.push('privileged');
    if (!['', 'Default'].includes(String(at(context, 'procMount') ?? ''))) found.push('procMount');
    const add = at(context, 'capabilities', 'add');
    if (Array.isArray(add) && add.some((each) => each !== 'CHOWN')) found.push('capabilities');
  }
  for (const each of [spec, ...containers]) {
    if (on(at(each, 'securityContext', 'windowsOptions', 'hostProcess'))) found.push('hostProcess');
    if (at(each, 'securityContext', 'seccompProfile', 'type') === 'Unconfined') found.push('seccomp');
  }
  const sysctls = at(spec, 'securityContext', 'sysctls');
  if (Array.isArray(sysctls) && sysctls.some((each) => at(each, 'name') === 'kernel.msgmax')) found.push('sysctls');
  return found;
}

describe('the reach of access pods, with any workload and any patch', () => {
  const plan = (spec: Json, patchSpecOperations: readonly unknown[], fields: object, accessPods: AccessPodMode) =>
    planPodAccess({
      ...planInput({ spec }, { patchSpecOperations }, fields),
      pullSecrets: [],
      workloads: [],
      accessPods,
    });
  const accountOf = (spec: Json): string => String(spec['serviceAccountName'] || spec['serviceAccount'] || 'default');

  it('never exceeds the list without the flag', () => {
    const counts = { planned: 0, tooFar: 0, other: 0 };
    fc.assert(
      fc.property(podSpec, fc.array(operation, { maxLength: 3 }), modes, (workload, operations, mode) => {
        const planned = plan(workload as Json, operations, {}, mode);
        if ('violation' in planned) {
          counts[planned.violation.code === 'PodReachesTooFar' ? 'tooFar' : 'other'] += 1;
          return;
        }
        counts.planned += 1;
        const account = mode === 'oz' ? accountOf(workload as Json) : 'default';
        const found = escapes(planned.plan.pod?.spec as Json, account);
        assert.deepEqual(found, [], JSON.stringify(planned.plan.pod));
      }),
      { seed: 14, numRuns: runs(20_000) },
    );
    assert.ok(counts.planned > runs(200) && counts.tooFar > runs(2000), JSON.stringify(counts));
  }).timeout(120_000);

  it('is not the reason for a denial with the flag', () => {
    fc.assert(
      fc.property(podSpec, fc.array(operation, { maxLength: 3 }), modes, (workload, operations, mode) => {
        const planned = plan(workload as Json, operations, { allowPrivilegedPod: true }, mode);
        if ('violation' in planned) assert.notEqual(planned.violation.code, 'PodReachesTooFar');
      }),
      { seed: 15, numRuns: runs(2000) },
    );
  }).timeout(60_000);
});
