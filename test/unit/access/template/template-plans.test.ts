import assert from 'node:assert/strict';
import { admissionWork, PlanQueue } from '../../../../src/access/builders/plan-budget.ts';
import type { Violation } from '../../../../src/access/policy/policy.ts';
import { notPlanned, type PlannedTemplate } from '../../../../src/access/policy/template-policy.ts';
import { targetKey } from '../../../../src/access/stores/access-views.ts';
import type { PodView, SelectorView, WorkloadView } from '../../../../src/access/stores/cluster-views.ts';
import { type PlanRunner, TemplatePlans } from '../../../../src/access/template/template-plans.ts';
import { AdmissionPlanQueue, maxWaitingPlans } from '../../../../src/admission/plan-queue.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { accessConfig } from '../../../support/access-objects.ts';
import { pluck } from '../../../support/pluck.ts';
import { podView, selectorView, workloadView } from '../../../support/request-views.ts';
import { WorkClock } from '../../../support/work-clock.ts';

const container = { name: 'app', image: 'a:1' };
const privileged = { ...container, securityContext: { privileged: true } };
const controllerTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' };
const labels = { app: 'payments' };
const workload = workloadView('payments', { podTemplate: { metadata: { labels }, spec: { containers: [container] } } });
const service = selectorView('Service', 'payments', { matchLabels: labels });

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
  runner: PlanRunner = new PlanQueue(systemClock),
  pods: readonly PodView[] = [],
) =>
  new TemplatePlans({
    stores: {
      workload: (key) => workloads.find((view) => targetKey(view, view.namespace) === key),
      workloadsIn: () => [...workloads],
      selectorsIn: () => [...selectors],
      pods: { get: (key) => pods.find((pod) => pod.key === key) },
    },
    runner,
    clock: systemClock,
    accessPods: 'confined',
    ...(work === undefined ? {} : { work }),
  });
type Planned = Violation | typeof notPlanned | undefined;
/** What would deny a request even in an empty namespace. */
const inEmptyNamespace = async (
  given: TemplatePlans,
  ofTemplate: PlannedTemplate,
  signalOf = signal,
): Promise<Planned> => {
  const found = await given.violationsInEmptyNamespace(ofTemplate, signalOf);
  return found === notPlanned ? notPlanned : found[0];
};
/** What would deny a request now. */
const inNamespace = async (given: TemplatePlans, ofTemplate: PlannedTemplate, signalOf = signal): Promise<Planned> => {
  const plan = await given.planInNamespace(ofTemplate, signalOf);
  if (plan === notPlanned) return notPlanned;
  return 'violation' in plan ? plan.violation : undefined;
};
const codeOf = (planned: Planned) => (planned === notPlanned ? notPlanned : planned?.code);
const textOf = (planned: Planned) => (planned === notPlanned ? notPlanned : `${planned?.code}: ${planned?.message}`);
const patch = (operation: object) => ({ controllerTargetMutationConfig: { patchSpecOperations: [operation] } });
const hostNetwork = { op: 'add', path: '/spec/hostNetwork', value: true };

describe('plans of templates', () => {
  const alone: [title: string, spec: object, expected: RegExp | undefined][] = [
    ['a plain podSpec', { podSpec: { containers: [container] } }, undefined],
    [
      'a privileged container',
      { podSpec: { containers: [privileged] } },
      /^PodReachesTooFar: .*privileged .* is set; remove it, or ask /,
    ],
    ['a privileged pod with the flag', { podSpec: { containers: [privileged] }, allowPrivilegedPod: true }, undefined],
    [
      'a patch path that podSpec does not have',
      { podSpec: { containers: [container] }, ...patch({ op: 'remove', path: '/spec/containers/1' }) },
      /^InvalidTemplate: spec\.controllerTargetMutationConfig\.patchSpecOperations\[0\] .*there is nothing at "\/spec\/containers\/1"; "\/spec\/containers" is a list of 1: write the index 0$/,
    ],
    [
      'a label in the access command that the pod does not have',
      {
        podSpec: { containers: [container] },
        accessConfig: {
          ...accessConfig,
          accessCommand: 'kubectl exec {{ .Metadata.Name }} -c {{ index .Metadata.Labels "c" }} -- sh',
        },
      },
      /^InvalidAccessCommand: .*label "c", which the access pod does not have; remove the placeholder$/,
    ],
    ['a patch to a workload, which other objects decide', { controllerTargetRef, ...patch(hostNetwork) }, undefined],
  ];
  for (const [title, spec, expected] of alone) {
    it(`${expected ? 'refuse' : 'accept'} ${title}, by the template alone`, async () => {
      const violation = await inEmptyNamespace(plans([workload], [service]), template(spec));
      if (expected) assert.match(textOf(violation), expected);
      else assert.equal(violation, undefined);
    });
  }

  it('find all violations of the pod, the command, and the patch, so that an update can be compared with the stored template', async () => {
    const hostPath = (name: string) => ({ name, hostPath: { path: '/' } });
    const unmounted = { ...container, volumeMounts: [{ name: 'x' }] };
    const podSpec = { hostPID: true, volumes: [hostPath('a'), hostPath('b')], containers: [privileged, unmounted] };
    const accessCommand = 'kubectl exec {{ .Metadata.Name }} -- {{ index .Metadata.Labels "missing" }}';
    const spec = template({
      podSpec,
      accessConfig: { ...accessConfig, accessCommand },
      ...patch({ op: 'remove', path: '/spec/x' }),
    });
    const found = await plans().violationsInEmptyNamespace(spec, signal);
    assert.ok(found !== notPlanned);
    assert.deepEqual(
      found.map(({ code, field }) => `${code} ${field}`),
      [
        'PodReachesTooFar spec.hostPID',
        'PodReachesTooFar spec.volumes[0].hostPath',
        'PodReachesTooFar spec.volumes[1].hostPath',
        'PodReachesTooFar spec.containers[0].securityContext.privileged',
        'InvalidTemplate spec.podSpec.volumes',
        'InvalidAccessCommand spec.accessConfig.accessCommand',
        'InvalidTemplate spec.controllerTargetMutationConfig.patchSpecOperations[0]',
      ],
    );
  });

  it('find the violations of the pod even if the patch is too large for a webhook', async () => {
    const large = { op: 'add', path: '/spec/x', value: 'x'.repeat(admissionWork) };
    const found = await plans([], [], admissionWork).violationsInEmptyNamespace(
      template({ podSpec: { containers: [privileged] }, ...patch(large) }),
      signal,
    );
    assert.ok(found !== notPlanned);
    assert.deepEqual(pluck(found, 'code'), ['PodReachesTooFar']);
  });

  it('say what other objects deny now', async () => {
    const codeNow = async (given: TemplatePlans, spec: object, kind?: PlannedTemplate['kind']) =>
      codeOf(await inNamespace(given, template(spec, kind)));
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
      'InvalidTemplate',
    );
    assert.equal(await codeNow(plans(), { controllerTargetRef }, 'ExecAccessTemplate'), 'TargetNotFound');
  });

  const viaCommand = (words: string, config: object = {}) => ({
    controllerTargetRef,
    accessConfig: { ...accessConfig, accessCommand: `kubectl exec {{ .Metadata.Name }} -- sh ${words}`, ...config },
  });

  for (const [map, name] of [
    ['Labels', 'label "app", which the access pod does not have; add the label to podLabels'],
    ['Annotations', 'annotation "app", which the access pod does not have; add the annotation to podAnnotations'],
  ] as const) {
    it(`name the field that adds what the command names: ${map}`, async () => {
      const spec = viaCommand(`{{ index .Metadata.${map} "app" }}`);
      assert.equal(
        textOf(await inNamespace(plans([workload]), template(spec))),
        `InvalidAccessCommand: accessCommand names ${name}, or remove the placeholder`,
      );
    });
  }

  const podLabel = (key: string): string => `{{ index .Metadata.Labels "${key}" }}`;
  const execTemplates: [title: string, spec: object, expected: RegExp | undefined][] = [
    [
      'a label that the Pod template of the workload lacks',
      viaCommand(podLabel('app2')),
      /^InvalidAccessCommand: .* label "app2", .*; add the label to the Pod template of Deployment payments, or remove the placeholder$/,
    ],
    [
      'an annotation that it lacks',
      viaCommand('{{ index .Metadata.Annotations "app" }}'),
      /^InvalidAccessCommand: .*annotation "app"/,
    ],
    ['a label that it has', viaCommand(podLabel('app')), undefined],
    ['a label that the ReplicaSet adds', viaCommand(podLabel('pod-template-hash')), undefined],
    ['a label of StatefulSet Pods', viaCommand(podLabel('apps.kubernetes.io/pod-index')), /^InvalidAccessCommand: /],
    [
      'a label that it lacks, in a command that no requester gets',
      viaCommand(podLabel('app2'), { session: { via: 'Gateway' } }),
      undefined,
    ],
  ];
  for (const [title, spec, expected] of execTemplates) {
    it(`${expected ? 'refuse' : 'accept'} an ExecAccessTemplate with ${title}`, async () => {
      const violation = await inNamespace(plans([workload]), template(spec, 'ExecAccessTemplate'));
      if (expected) assert.match(textOf(violation), expected);
      else assert.equal(violation, undefined);
    });
  }

  it('accept an ExecAccessTemplate with the index of a Pod of a StatefulSet', async () => {
    const kind = 'StatefulSet';
    const spec = {
      ...viaCommand(podLabel('apps.kubernetes.io/pod-index')),
      controllerTargetRef: { ...controllerTargetRef, kind },
    };
    const given = plans([{ ...workload, kind }]);
    assert.equal(await inNamespace(given, template(spec, 'ExecAccessTemplate')), undefined);
  });

  const argo = 'argoproj.io/v1alpha1';
  const otherKinds: [string, string, string, string, string][] = [
    ['apps/v1', 'StatefulSet', 'apps/v1', 'Deployment', 'Deployment in spec.controllerTargetRef.kind'],
    [
      argo,
      'Rollout',
      'apps/v1',
      'Deployment',
      'Deployment in spec.controllerTargetRef.kind, and apps/v1 in apiVersion',
    ],
    ['apps/v1', 'Deployment', argo, 'Rollout', `Rollout in spec.controllerTargetRef.kind, and ${argo} in apiVersion`],
  ];
  for (const [apiVersion, kind, otherVersion, other, remedy] of otherKinds) {
    it(`name the ${other} that has the name, if the template names a ${kind}`, async () => {
      const wrongKind = template({ controllerTargetRef: { apiVersion, kind, name: 'payments' } });
      assert.equal(
        textOf(await inNamespace(plans([{ ...workload, apiVersion: otherVersion, kind: other }]), wrongKind)),
        `TargetNotFound: ${kind} "payments" does not exist in namespace payments; a ${other} of that name exists: write ${remedy}`,
      );
    });
  }

  it('name up to three workloads of the kind, if no workload has the name', async () => {
    const named = template({ controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'paymentss' } });
    const existing = ['web', 'payments', 'ledger', 'checkout'].map((name) => ({ ...workload, name }));
    const missing = 'TargetNotFound: Deployment "paymentss" does not exist in namespace payments; ';
    assert.equal(
      textOf(await inNamespace(plans(existing), named)),
      `${missing}create it, or write an existing name, such as one of [checkout, ledger, payments]`,
    );
    assert.equal(
      textOf(await inNamespace(plans(existing.slice(0, 2)), named)),
      `${missing}create it, or write an existing name, such as one of [payments, web]`,
    );
    const others = existing.map((view) => ({ ...view, kind: 'StatefulSet' }));
    assert.equal(
      textOf(await inNamespace(plans(others), named)),
      `${missing}create it, or correct controllerTargetRef or the namespace of the template`,
    );
  });

  it('name the workload that controls the Pod whose name the template has instead of the name of a workload', async () => {
    const podName = 'payments-7d67668b96-74vbq';
    const named = (kind: string) => template({ controllerTargetRef: { apiVersion: 'apps/v1', kind, name: podName } });
    const withPod = (controller: PodView['controller'], labels: PodView['labels'] = {}, of: object = {}) => {
      const key = `payments/${podName}`;
      const pod = podView({ key, name: podName, labels, ...(controller ? { controller } : {}) });
      return plans([{ ...workload, ...of }], [], undefined, undefined, [pod]);
    };
    const missing = `TargetNotFound: Deployment "${podName}" does not exist in namespace payments; `;
    const hash = '7d67668b96';
    const set = { kind: 'ReplicaSet', name: `payments-${hash}`, uid: 'r' };
    assert.equal(
      textOf(await inNamespace(withPod(set, { 'pod-template-hash': hash }), named('Deployment'))),
      `${missing}a Pod of Deployment payments has that name: write apiVersion apps/v1, kind Deployment, and name payments in spec.controllerTargetRef`,
    );
    const stateful = { kind: 'StatefulSet', name: 'payments', uid: workload.uid };
    assert.match(
      textOf(await inNamespace(withPod(stateful, {}, { kind: 'StatefulSet' }), named('Deployment'))),
      /; a Pod of StatefulSet payments has that name: write apiVersion apps\/v1, kind StatefulSet, and name payments in /,
    );
    const unknown = `${missing}a Pod has that name: write the name of a Deployment, StatefulSet, DaemonSet, or Rollout`;
    for (const controller of [undefined, { kind: 'Job', name: 'payments', uid: 'j' }, set])
      assert.equal(textOf(await inNamespace(withPod(controller), named('Deployment'))), unknown);
  });

  it('name the objects in allowedSelectors that do not exist', () => {
    const allowedSelectors = ['Service', 'NetworkPolicy'].map((kind) => ({ kind, name: 'payments' }));
    const spaced = { kind: 'Service', name: 'payments ' };
    const lines = (of: object) => plans([workload], [service]).selectorNotes(template({ controllerTargetRef, ...of }));
    const why = 'which does not exist in namespace payments, so the entry allows nothing';
    assert.deepEqual(lines({ allowedSelectors: [...allowedSelectors, spaced] }), [
      `spec.allowedSelectors[1] names NetworkPolicy "payments", ${why}; create it, correct the name, or remove the entry`,
      `spec.allowedSelectors[2] names Service "payments ", ${why}; create it, correct the name, or remove the entry`,
    ]);
    assert.deepEqual(lines({}), []);
  });

  it('stop at the work that a webhook may do, which a usual pod does not need', async () => {
    const large = { podSpec: { containers: [{ ...container, args: ['x'.repeat(150_000)] }] } };
    const usual = { podSpec: { containers: [{ ...container, args: ['x'.repeat(20_000)] }] } };
    assert.equal(codeOf(await inEmptyNamespace(plans([], [], admissionWork), template(large))), 'PlanTooLarge');
    assert.equal(await inEmptyNamespace(plans(), template(large)), undefined);
    assert.equal(await inEmptyNamespace(plans([], [], admissionWork), template(usual)), undefined);
  });

  describe('at admission', () => {
    const apiServer = '10.0.0.1';
    let clock: WorkClock;
    let queue: AdmissionPlanQueue;
    let planned: string[];
    beforeEach(async () => {
      clock = new WorkClock();
      queue = new AdmissionPlanQueue(clock);
      planned = [];
      // Later plans wait until the clock advances.
      await queue.runnerFor(apiServer, 'quiet').run(() => clock.work(5), signal);
    });

    /** Plans a template of the namespace, which takes 15 ms. */
    const plan = (address: string, namespace: string, signalOfReview = signal): Promise<Planned> => {
      const workloadsIn = () => {
        clock.work(15);
        planned.push(`${address} ${namespace}`);
        return [];
      };
      const stores = { workload: () => workload, workloadsIn, selectorsIn: () => [], pods: { get: () => undefined } };
      const runner = queue.runnerFor(address, namespace);
      const given = new TemplatePlans({ stores, runner, clock, accessPods: 'confined' });
      return inNamespace(given, { ...template({ controllerTargetRef }), namespace }, signalOfReview);
    };
    const flood = (address: string, namespaceOf: (index: number) => string): Promise<Planned>[] =>
      Array.from({ length: 4 * maxWaitingPlans }, (_, index) => plan(address, namespaceOf(index)));

    it('of one namespace never delay or displace those of another', async () => {
      const others = flood(apiServer, () => 'greedy');
      const modest = [plan(apiServer, 'modest'), plan(apiServer, 'modest')];
      await clock.advance(10_000);
      assert.deepEqual(await Promise.all(modest), [undefined, undefined]);
      const skipped = (await Promise.all(others)).filter((answer) => answer === notPlanned);
      assert.equal(skipped.length, 3 * maxWaitingPlans + modest.length);
      assert.deepEqual(
        planned.slice(0, 4),
        ['greedy', 'modest', 'greedy', 'modest'].map((name) => `${apiServer} ${name}`),
      );
    });

    it('of a client that names a new namespace each time leave the API server its share', async () => {
      const others = flood('10.0.0.9', (index) => `forged-${index}`);
      const mine = ['payments', 'billing', 'payments'].map((namespace) => plan(apiServer, namespace));
      await clock.advance(10_000);
      assert.deepEqual(await Promise.all(mine), [undefined, undefined, undefined]);
      await Promise.all(others);
      const turns = planned.slice(0, 6).map((name) => name.split(' ')[0]);
      assert.deepEqual(turns, ['10.0.0.9', apiServer, '10.0.0.9', apiServer, '10.0.0.9', apiServer]);
    });

    it('do not start once the review is aborted, and end its wait at once', async () => {
      const aborter = new AbortController();
      const waiting = plan(apiServer, 'payments', aborter.signal);
      aborter.abort(new Error('deadline'));
      await assert.rejects(waiting, /deadline/);
      const live = plan(apiServer, 'payments');
      await clock.advance(10);
      assert.equal(await live, undefined);
      assert.equal(planned.length, 1);
      await assert.rejects(plan(apiServer, 'payments', aborter.signal), /deadline/);
      assert.equal(planned.length, 1);
    });

    it('are skipped while too many wait; those of aborted reviews do not count', async () => {
      const given = plans([], [], undefined, queue.runnerFor(apiServer, 'payments'));
      const spec = template({ podSpec: { containers: [privileged] } });
      const aborter = new AbortController();
      const dead = Array.from({ length: maxWaitingPlans }, () => inEmptyNamespace(given, spec, aborter.signal));
      assert.equal(await inEmptyNamespace(given, spec), notPlanned);
      assert.equal(await inNamespace(given, spec), notPlanned);
      aborter.abort(new Error('deadline'));
      await Promise.allSettled(dead);
      const live = inEmptyNamespace(given, spec);
      await clock.advance(10);
      assert.equal(codeOf(await live), 'PodReachesTooFar');
    });
  });
});
