import assert from 'node:assert/strict';
import type { Plan } from '../../../../src/access/builders/plan.ts';
import { type PodAccessInput, planPodAccess } from '../../../../src/access/builders/pod-access.ts';
import { childNameOf } from '../../../../src/api/access/names.ts';
import type { PodAccessTemplateSpec } from '../../../../src/api/access/pod-access.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { accessConfig } from '../../../support/access-objects.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';
import { selectorView, workloadView } from '../../../support/request-views.ts';

const uid = '1a2b3c4d-0000-4000-8000-000000000000';
const controllerTargetRef = { apiVersion: 'apps/v1' as const, kind: 'Deployment' as const, name: 'web' };
const podTemplate = {
  metadata: { labels: { app: 'web' }, annotations: { note: 'x' }, finalizers: ['example.com/stay'], name: 'mine' },
  spec: {
    serviceAccountName: 'web',
    automountServiceAccountToken: true,
    nodeName: 'node-1',
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 600,
    ephemeralContainers: [{ name: 'debug' }],
    containers: [{ name: 'app', image: 'web:1', volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }] }],
    volumes: [{ name: 'tmp', emptyDir: {} }],
  },
};
const workload = (template: object = podTemplate) => workloadView('web', { podTemplate: { ...template } });
const patching = (...patchSpecOperations: { op: 'add' | 'replace'; path: string; value: unknown }[]) => ({
  controllerTargetMutationConfig: { patchSpecOperations },
});
const input = (spec: Partial<PodAccessTemplateSpec> = {}, over: Partial<PodAccessInput> = {}): PodAccessInput =>
  deepFreeze({
    request: { namespace: 'ns', name: 'req', uid },
    templateSpec: { accessConfig, controllerTargetRef, ...spec },
    workload: workload(),
    pullSecrets: [],
    accessPods: 'confined' as const,
    workloads: [workload()],
    selectors: [],
    subjects: [{ kind: 'User', name: 'alice' }],
    durationMs: 1_800_000,
    ...over,
  });

type PlannedPod = KubeObject & { readonly spec: Readonly<Record<string, unknown>> };

function plan(spec?: Partial<PodAccessTemplateSpec>, over?: Partial<PodAccessInput>): Plan & { pod: PlannedPod } {
  const planned = planPodAccess(input(spec, over));
  assert.ok('plan' in planned, JSON.stringify(planned));
  return { ...planned.plan, pod: planned.plan.pod as PlannedPod };
}
function refusal(spec?: Partial<PodAccessTemplateSpec>, over?: Partial<PodAccessInput>): string {
  const planned = planPodAccess(input(spec, over));
  return 'violation' in planned ? `${planned.violation.code}: ${planned.violation.message}` : 'none';
}

const name = 'req-1a2b3c4d-access';
const owner = {
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  name: 'req',
  uid,
  controller: true,
};

describe('pod access builder', () => {
  it('creates a pod from the workload’s template, with an active deadline and without a token', () => {
    const { pod, hash, target } = plan();
    assert.deepEqual(pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'ns',
        labels: { 'access.drawbridge.dev/request': uid },
        annotations: { note: 'x', 'access.drawbridge.dev/plan-hash': hash },
        ownerReferences: [owner],
      },
      spec: {
        serviceAccountName: 'default',
        automountServiceAccountToken: false,
        activeDeadlineSeconds: 1800,
        terminationGracePeriodSeconds: 1,
        restartPolicy: 'Always',
        containers: podTemplate.spec.containers,
        volumes: podTemplate.spec.volumes,
      },
    });
    assert.deepEqual(target, { name });
  });

  it('grants the subjects access to that pod only', () => {
    const { role, roleBinding, hash } = plan();
    const metadata = {
      name,
      namespace: 'ns',
      labels: { 'access.drawbridge.dev/request': uid },
      annotations: { 'access.drawbridge.dev/plan-hash': hash },
      ownerReferences: [owner],
    };
    assert.deepEqual(role['metadata'], metadata);
    assert.deepEqual(role['rules'], [
      { apiGroups: [''], resources: ['pods'], resourceNames: [name], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['pods/exec'], resourceNames: [name], verbs: ['get', 'create'] },
    ]);
    assert.deepEqual(roleBinding['metadata'], metadata);
    assert.deepEqual(roleBinding['roleRef'], { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name });
    assert.deepEqual(roleBinding['subjects'], [{ kind: 'User', name: 'alice', apiGroup: 'rbac.authorization.k8s.io' }]);
  });

  it('creates the pod of a podSpec', () => {
    const podSpec = {
      containers: [{ name: 'app', image: 'a:1' }],
      automountServiceAccountToken: true,
      activeDeadlineSeconds: 60,
    };
    const { pod } = plan({}, { templateSpec: { accessConfig, podSpec }, workload: undefined });
    assert.deepEqual(pod.spec, { ...podSpec, terminationGracePeriodSeconds: 1 });
  });

  it('prefers the workload over the podSpec', () => {
    assert.deepEqual(plan({ podSpec: { containers: [{ name: 'other' }] } }).pod, plan().pod);
  });

  const grace = (value: unknown) => patching({ op: 'add', path: '/spec/terminationGracePeriodSeconds', value });
  const keeping = (mutation: { controllerTargetMutationConfig: object }) => ({
    controllerTargetMutationConfig: { ...mutation.controllerTargetMutationConfig, keepTerminationGracePeriod: true },
  });
  const ofNoWorkload = { controllerTargetRef: undefined, podSpec: { containers: [{ name: 'a' }] } };
  const graces: [string, object, number | undefined][] = [
    ['of a workload', {}, 1],
    ['of a workload, which the template keeps', keeping({ controllerTargetMutationConfig: {} }), 600],
    ['of a patch', grace(3600), 1],
    ['of a patch, which is shorter', grace(0), 0],
    ['of a patch, below zero', grace(-1), 1],
    ['of a patch, no number', grace('0'), 1],
    ['of a patch, which the template keeps', keeping(grace(90)), 90],
    [
      'of a podSpec',
      { ...ofNoWorkload, podSpec: { containers: [{ name: 'a' }], terminationGracePeriodSeconds: 60 } },
      1,
    ],
    ['of no podSpec, with a config that is for workloads', { ...keeping(grace(90)), ...ofNoWorkload }, 1],
  ];
  for (const [title, spec, expected] of graces) {
    it(`has the grace period ${title}: ${expected} s`, () => {
      const { pod } = plan(spec as Partial<PodAccessTemplateSpec>);
      assert.equal(pod.spec['terminationGracePeriodSeconds'], expected);
    });
  }

  it('copies no annotation that other controllers act on, and adds those of the template', () => {
    const role = 'iam.gke.io/gcp-service-account';
    const annotations = {
      [role]: 'web@project',
      'sidecar.istio.io/inject': 'false',
      note: 'x',
    };
    const template = { ...podTemplate, metadata: { ...podTemplate.metadata, annotations } };
    const kept = (spec?: Partial<PodAccessTemplateSpec>): Record<string, string> => {
      const { pod, hash } = plan(spec, { workload: workload(template) });
      const { 'access.drawbridge.dev/plan-hash': own, ...others } = pod.metadata.annotations ?? {};
      assert.equal(own, hash);
      return others;
    };
    assert.deepEqual(kept(), { 'sidecar.istio.io/inject': 'false', note: 'x' });
    const podAnnotations = { [role]: 'debug@project', 'sidecar.istio.io/inject': 'true' };
    assert.deepEqual(kept({ controllerTargetMutationConfig: { podAnnotations } }), { ...podAnnotations, note: 'x' });
  });

  describe('of a workload with a ServiceAccount', () => {
    const specOf = (...given: Parameters<typeof plan>) => plan(...given).pod.spec;
    const keeping = { controllerTargetMutationConfig: { keepServiceAccount: true } };
    const pullSecrets = ['registry', 'mirror'];

    it('runs under the default ServiceAccount, with the image pull secrets of the workload’s', () => {
      const { serviceAccountName, imagePullSecrets } = specOf({}, { pullSecrets });
      assert.equal(serviceAccountName, 'default');
      assert.deepEqual(imagePullSecrets, [{ name: 'registry' }, { name: 'mirror' }]);
    });

    it('sets the default ServiceAccount in the deprecated field too', () => {
      const template = { spec: { containers: [{ name: 'app' }], serviceAccount: 'web', serviceAccountName: 'web' } };
      const { serviceAccount, serviceAccountName } = specOf({}, { workload: workload(template) });
      assert.deepEqual([serviceAccount, serviceAccountName], ['default', 'default']);
    });

    for (const [title, spec, over] of [
      ['that the template keeps', keeping, {}],
      ['in the mode oz', {}, { accessPods: 'oz' as const }],
    ] as const) {
      it(`runs under the ServiceAccount of the workload ${title}, without copied pull secrets`, () => {
        const kept = specOf(spec, over);
        assert.deepEqual([kept['serviceAccountName'], kept['imagePullSecrets']], ['web', undefined]);
      });
    }

    it('accepts no third ServiceAccount, even if the template keeps the account', () => {
      const admin = { op: 'replace' as const, path: '/spec/serviceAccountName', value: 'admin' };
      const { controllerTargetMutationConfig } = patching(admin);
      const kept = { ...controllerTargetMutationConfig, ...keeping.controllerTargetMutationConfig };
      assert.match(refusal({ controllerTargetMutationConfig: kept }), /is "admin", not "web"/);
      assert.match(refusal(patching(admin), { accessPods: 'oz' }), /is "admin", not "web"/);
    });

    it('rejects a patch to the workload’s ServiceAccount unless the template keeps the account', () => {
      const web = { op: 'replace' as const, path: '/spec/serviceAccountName', value: 'web' };
      assert.match(refusal(patching(web)), /is "web", not "default"/);
    });
  });

  describe('of a workload that a NetworkPolicy isolates', () => {
    const labels = { app: 'web', tier: 'backend' };
    const template = { ...podTemplate, metadata: { labels } };
    const under = (matchLabels: Record<string, string>) => ({
      workload: workload(template),
      selectors: [selectorView('NetworkPolicy', 'deny', { matchLabels })],
    });

    it('keeps the labels that the policy selects by, besides those of the template', () => {
      const { pod } = plan(
        { controllerTargetMutationConfig: { podLabels: { role: 'console' } } },
        under({ tier: 'backend' }),
      );
      assert.deepEqual(pod.metadata.labels, { role: 'console', tier: 'backend', 'access.drawbridge.dev/request': uid });
    });

    it('is denied if the workload’s controller would adopt the pod', () =>
      assert.match(
        refusal({}, under({ app: 'web' })),
        /^ConfinementLost: .*with them, Deployment web would select it/,
      ));

    it('is created as in Oz, in the mode oz', () => {
      const { pod } = plan({}, { ...under({ app: 'web' }), accessPods: 'oz' });
      assert.deepEqual(pod.metadata.labels, { 'access.drawbridge.dev/request': uid });
    });
  });

  it('mounts a token if the patch sets that', () => {
    const { pod } = plan(patching({ op: 'replace', path: '/spec/automountServiceAccountToken', value: true }));
    assert.equal(pod.spec['automountServiceAccountToken'], true);
  });

  it('keeps its own label and hash whatever the template sets', () => {
    const { pod, hash } = plan({
      controllerTargetMutationConfig: {
        podLabels: { 'access.drawbridge.dev/request': 'forged', team: 'x' },
        podAnnotations: { 'access.drawbridge.dev/plan-hash': 'forged' },
      },
    });
    assert.deepEqual(pod.metadata.labels, { team: 'x', 'access.drawbridge.dev/request': uid });
    assert.equal(pod.metadata.annotations?.['access.drawbridge.dev/plan-hash'], hash);
  });

  it('keeps only labels and annotations of patched metadata', () => {
    const { pod } = plan(
      patching(
        { op: 'add', path: '/metadata/namespace', value: 'kube-system' },
        { op: 'add', path: '/metadata/ownerReferences', value: [] },
        { op: 'add', path: '/metadata/generateName', value: 'x' },
      ),
    );
    assert.deepEqual(pod.metadata, { ...plan().pod.metadata, annotations: pod.metadata.annotations });
  });

  it('reports the values that the caps lowered', () => {
    assert.deepEqual(plan({ maxCpu: '1' }).limits, ['container app: limits.cpu set to 1']);
    assert.equal(plan().limits, undefined);
  });

  it('returns the same plan for the same input, and another hash for any other', () => {
    assert.deepEqual(plan(), plan());
    const hashes = [
      plan(),
      plan({}, { durationMs: 60_000 }),
      plan({}, { subjects: [{ kind: 'User', name: 'bob' }] }),
      plan({}, { request: { namespace: 'ns', name: 'req', uid: uid.replace('1a', '2a') } }),
      plan({ controllerTargetMutationConfig: {}, maxCpu: '1' }),
    ].map(({ hash }) => hash);
    assert.equal(new Set(hashes).size, hashes.length);
    for (const hash of hashes) assert.match(hash, /^[0-9a-f]{64}$/);
  });

  for (const [title, spec, over, expected] of [
    ['neither workload nor podSpec', { controllerTargetRef: undefined }, {}, /InvalidTemplate/],
    ['a workload that is gone', {}, { workload: undefined }, /TargetNotFound: Deployment "web"/],
    [
      'another ServiceAccount in the deprecated field',
      { podSpec: { containers: [{ name: 'a' }], serviceAccount: 'admin' }, controllerTargetRef: undefined },
      {},
      /is "admin", not "default"/,
    ],
    // The pod is judged as it will be, after all patches.
    [
      'a container that a patch makes privileged',
      patching({ op: 'add', path: '/spec/containers/0/securityContext', value: { privileged: true } }),
      {},
      /PodReachesTooFar: spec\.containers\[0\]\.securityContext\.privileged/,
    ],
    [
      'labels that are no strings',
      patching({ op: 'add', path: '/metadata/labels', value: { a: 1 } }),
      {},
      /metadata\.labels .* map of strings/,
    ],
    [
      'a mount without volume',
      patching({ op: 'replace', path: '/spec/volumes', value: [] }),
      {},
      /uses the volume "tmp".*volumeClaimTemplates/,
    ],
  ] as const) {
    it(`rejects ${title}`, () => assert.match(refusal(spec as Partial<PodAccessTemplateSpec>, over), expected));
  }

  it('rejects a privileged workload without the flag', () => {
    const reaching = { spec: { ...podTemplate.spec, hostNetwork: true } };
    assert.match(refusal({}, { workload: workload(reaching) }), /PodReachesTooFar: spec\.hostNetwork/);
    assert.ok(plan({ allowPrivilegedPod: true }, { workload: workload(reaching) }).pod);
  });

  for (const [durationMs, seconds] of [
    [1, 1],
    [1000, 1],
    [1001, 2],
    [Number.MAX_SAFE_INTEGER, 2 ** 31 - 1],
  ] as const) {
    it(`turns ${durationMs} ms into a deadline of ${seconds} s`, () => {
      assert.equal(plan({}, { durationMs }).pod.spec['activeDeadlineSeconds'], seconds);
    });
  }
});

describe('names of children', () => {
  for (const [requestName, expected] of [
    ['req', name],
    ['x'.repeat(60), `${'x'.repeat(46)}-1a2b3c4d-access`],
    [`${'x'.repeat(44)}-.y`, `${'x'.repeat(44)}-1a2b3c4d-access`],
  ] as const) {
    it(`for ${requestName} are ${expected}`, () => assert.equal(childNameOf({ name: requestName, uid }), expected));
  }
});
