import assert from 'node:assert/strict';
import { admissionWork, PlanQueue } from '../../../../src/access/builders/plan-budget.ts';
import { notPlanned, type PlannedTemplate } from '../../../../src/access/policy/template-policy.ts';
import type { SelectorView, WorkloadView } from '../../../../src/access/stores/cluster-views.ts';
import { maxUnfinishedPlans, TemplatePlans } from '../../../../src/access/template/template-plans.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { deferred } from '../../../../src/kit/promises.ts';

const accessConfig = {
  allowedGroups: ['devs'],
  defaultDuration: '1h',
  maxDuration: '24h',
  accessCommand: 'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
  grantTo: 'Requester',
};
const container = { name: 'app', image: 'a:1' };
const privileged = { ...container, securityContext: { privileged: true } };
const controllerTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' };
const metadata = {
  key: 'payments/payments',
  uid: 'w-1',
  resourceVersion: '1',
  namespace: 'payments',
  name: 'payments',
};
const selector = { matchLabels: { app: 'payments' } };
const workload: WorkloadView = {
  ...metadata,
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  selector,
  podTemplate: { metadata: { labels: { app: 'payments' } }, spec: { containers: [container] } },
};
const service: SelectorView = { ...metadata, kind: 'Service', selector, isolatesEgress: false };

const template = (spec: object, kind: PlannedTemplate['kind'] = 'PodAccessTemplate'): PlannedTemplate => ({
  kind,
  namespace: 'payments',
  name: 'shell',
  spec: { accessConfig, ...spec } as PlannedTemplate['spec'],
});
const { signal } = new AbortController();
const plans = (
  workloads: readonly WorkloadView[] = [],
  selectors: readonly SelectorView[] = [],
  work?: number,
  queue = new PlanQueue(systemClock),
) =>
  new TemplatePlans({
    stores: {
      workload: () => workloads[0],
      workloadsIn: () => [...workloads],
      selectorsIn: () => [...selectors],
    },
    queue,
    clock: systemClock,
    accessPods: 'confined',
    ...(work === undefined ? {} : { work }),
  });
type Planned = Awaited<ReturnType<TemplatePlans['violationInEmptyNamespace']>>;
const codeOf = (planned: Planned) => (planned === notPlanned ? notPlanned : planned?.code);
const textOf = (planned: Planned) => (planned === notPlanned ? notPlanned : `${planned?.code}: ${planned?.message}`);
const patch = (operation: object) => ({ controllerTargetMutationConfig: { patchSpecOperations: [operation] } });
const hostNetwork = { op: 'add', path: '/spec/hostNetwork', value: true };

describe('plans of templates', () => {
  const alone: [title: string, spec: object, expected: RegExp | undefined][] = [
    ['a plain podSpec', { podSpec: { containers: [container] } }, undefined],
    ['a privileged container', { podSpec: { containers: [privileged] } }, /^PodReachesTooFar: .*privileged .* is set/],
    [
      'a privileged container with the flag',
      { podSpec: { containers: [privileged] }, allowPrivilegedPod: true },
      undefined,
    ],
    [
      'a patch path that podSpec does not have',
      { podSpec: { containers: [container] }, ...patch({ op: 'remove', path: '/spec/containers/1' }) },
      /^InvalidPatch: patchSpecOperations\[0\] .*there is nothing at \/spec\/containers\/1; paths are those of a pod, such as \/spec\/containers\/0\/image$/,
    ],
    [
      'a label in the access command that the pod does not have',
      {
        podSpec: { containers: [container] },
        accessConfig: {
          ...accessConfig,
          accessCommand: 'kubectl exec {{ .Metadata.Name }} -c {{ index .Metadata.Labels "c" }}',
        },
      },
      /^InvalidAccessCommand: .*label "c"/,
    ],
    ['a patch to a workload, which other objects decide', { controllerTargetRef, ...patch(hostNetwork) }, undefined],
  ];
  for (const [title, spec, expected] of alone) {
    it(`${expected ? 'refuse' : 'accept'} ${title}, by the template alone`, async () => {
      const violation = await plans([workload], [service]).violationInEmptyNamespace(template(spec), signal);
      if (expected) assert.match(textOf(violation), expected);
      else assert.equal(violation, undefined);
    });
  }

  it('say what other objects deny now', async () => {
    const codeNow = async (given: TemplatePlans, spec: object, kind?: PlannedTemplate['kind']) =>
      codeOf(await given.violationInNamespace(template(spec, kind), signal));
    const labelled = { controllerTargetRef, controllerTargetMutationConfig: { podLabels: { app: 'payments' } } };
    assert.equal(await codeNow(plans(), { controllerTargetRef }), 'TargetNotFound');
    assert.equal(await codeNow(plans([workload]), { controllerTargetRef }), undefined);
    assert.equal(await codeNow(plans([workload]), { controllerTargetRef, ...patch(hostNetwork) }), 'PodReachesTooFar');
    assert.equal(await codeNow(plans([workload]), labelled), undefined);
    assert.equal(await codeNow(plans([workload], [service]), labelled), 'PodIsSelected');
    const withoutSelector = { ...workload, selector: undefined };
    assert.equal(await codeNow(plans([workload]), { controllerTargetRef }, 'ExecAccessTemplate'), undefined);
    assert.equal(
      await codeNow(plans([withoutSelector]), { controllerTargetRef }, 'ExecAccessTemplate'),
      'InvalidSelector',
    );
    assert.equal(await codeNow(plans(), { controllerTargetRef }, 'ExecAccessTemplate'), 'TargetNotFound');
  });

  it('stop at the work that a webhook may do, which a usual pod does not need', async () => {
    const large = { podSpec: { containers: [{ ...container, args: ['x'.repeat(150_000)] }] } };
    const usual = { podSpec: { containers: [{ ...container, args: ['x'.repeat(20_000)] }] } };
    assert.equal(
      codeOf(await plans([], [], admissionWork).violationInEmptyNamespace(template(large), signal)),
      'PlanTooLarge',
    );
    assert.equal(await plans().violationInEmptyNamespace(template(large), signal), undefined);
    assert.equal(await plans([], [], admissionWork).violationInEmptyNamespace(template(usual), signal), undefined);
  });

  it('do not start once the review is aborted, and end its wait at once', async () => {
    const queue = new PlanQueue(systemClock);
    const blocker = deferred();
    let started = 0;
    const workloadsIn = () => {
      started++;
      return [];
    };
    const stores = { workload: () => workload, workloadsIn, selectorsIn: () => [] };
    const given = new TemplatePlans({ stores, queue, clock: systemClock, accessPods: 'confined' });
    const before = queue.run(() => blocker.promise);
    const aborter = new AbortController();
    const waiting = given.violationInNamespace(template({ controllerTargetRef }), aborter.signal);
    aborter.abort(new Error('deadline'));
    await assert.rejects(waiting, /deadline/);
    blocker.resolve();
    await before;
    assert.equal(await given.violationInNamespace(template({ controllerTargetRef }), signal), undefined);
    assert.equal(started, 1);
    await assert.rejects(given.violationInNamespace(template({ controllerTargetRef }), aborter.signal), /deadline/);
    assert.equal(started, 1);
  });

  it('are skipped while too many are unfinished; those of aborted reviews do not count', async () => {
    const queue = new PlanQueue(systemClock);
    const blocker = deferred();
    const before = queue.run(() => blocker.promise);
    const given = plans([], [], undefined, queue);
    const spec = template({ podSpec: { containers: [privileged] } });
    const aborter = new AbortController();
    const dead = Array.from({ length: maxUnfinishedPlans }, () =>
      given.violationInEmptyNamespace(spec, aborter.signal),
    );
    assert.equal(await given.violationInEmptyNamespace(spec, signal), notPlanned);
    assert.equal(await given.violationInNamespace(spec, signal), notPlanned);
    aborter.abort(new Error('deadline'));
    await Promise.allSettled(dead);
    const live = given.violationInEmptyNamespace(spec, signal);
    blocker.resolve();
    await before;
    assert.equal(codeOf(await live), 'PodReachesTooFar');
  });
});
