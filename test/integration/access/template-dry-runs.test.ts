import assert from 'node:assert/strict';
import { type AddressInfo, createServer } from 'node:net';
import { until } from '../../../sandbox/wait.ts';
import { accessTemplate } from '../../support/access-manifests.ts';
import {
  accessUrl,
  conditionOf,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { accessTo } from '../../support/isolated-workload.ts';

const container = { name: 'app', image: 'busybox:1.37', command: ['sleep', 'infinity'] };
const kind = 'PodAccessTemplate';
const template = (name: string, spec: object): Manifest => accessTemplate(kind, name, spec);
const withPod = (name: string, ofContainer: object, ofPod: object = {}): Manifest =>
  template(name, { podSpec: { containers: [{ ...container, ...ofContainer }], ...ofPod } });
const mutated = (name: string, controllerTargetMutationConfig: object): Manifest =>
  accessTo(name, 'payments', { controllerTargetMutationConfig });
const again = '; the server checks again, usually every 40 s';
const correct = '; correct the template or its workload';
/** What the API server rejects by the template and its workload alone. */
const invalid: [title: string, manifest: Manifest, cause: RegExp][] = [
  [
    'the name of a container',
    withPod('bad-name', { name: 'Shell_1' }),
    /^Pod "\S+" is invalid: spec\.containers\[0\]\.name: Invalid value: "Shell_1": a lowercase RFC 1123 label/,
  ],
  [
    'imagePullPolicy',
    withPod('bad-pull', { imagePullPolicy: 'Sometimes' }),
    /^Pod "\S+" is invalid: spec\.containers\[0\]\.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always"/,
  ],
  [
    'command as a string',
    withPod('bad-command', { command: 'sleep infinity' }),
    /^Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field Container\.spec\.containers\.command of type \[\]string/,
  ],
  [
    'requests above limits',
    withPod('bad-requests', { resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }),
    /^Pod "\S+" is invalid: spec\.containers\[0\]\.resources\.requests: Invalid value: "2": must be less than or equal to cpu limit of 1/,
  ],
  [
    'a label',
    mutated('bad-label', { podLabels: { team: 'two words' } }),
    /^Pod "\S+" is invalid: metadata\.labels: Invalid value: "two words": a valid label must be/,
  ],
];

describe('a template whose objects the API server would reject', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const writesOf = (name: string, since: number): number =>
    stage.plane.auditLog
      .calls({ user: stage.server.installation.serverUser, since })
      .filter(({ verb, resource, name: of, code }) => {
        const isWrite = verb === 'patch' && /templates\/status$/.test(resource) && code === 200;
        return isWrite && of === name;
      }).length;
  /** The API server logs a write after others can read it. */
  const oneWriteOf = async (name: string, since: number): Promise<void> => {
    await until('the write in the audit log', () => writesOf(name, since) > 0, { timeoutMs: 30_000 });
    assert.equal(writesOf(name, since), 1);
  };
  const judged = (name: string, reason: string, of = kind): Promise<StoredRequest> =>
    stage.requestUntil(`to be judged ${reason}`, { kind: of, metadata: { name, uid: '' } }, ({ status, metadata }) => {
      const plan = (status?.conditions ?? []).find(({ type }) => type === 'AccessPlanValid');
      return plan?.reason === reason && plan.observedGeneration === metadata.generation;
    });
  const message = (found: StoredRequest, type = 'AccessPlanValid'): string => conditionOf(found, type)?.message ?? '';

  for (const [title, manifest, cause] of invalid) {
    it(`is not ready for ${title}, in one write, and kubectl says which field to correct`, async () => {
      const since = stage.plane.auditLog.mark();
      const { name = '' } = manifest.metadata;
      await stage.apply(manifest);
      const found = await judged(name, 'InvalidTemplate');
      const prefix = 'the API server rejects the access pod: ';
      assert.equal(message(found).slice(0, prefix.length), prefix);
      assert.match(message(found).slice(prefix.length), cause);
      assert(message(found).endsWith(correct), message(found));
      assert.deepEqual([found.status?.ready, conditionOf(found, 'Stalled')?.reason], [false, 'InvalidTemplate']);
      const wide = await stage.kubectl('get', 'podaccesstemplate', name, '-o', 'wide');
      assert.match(
        wide,
        /^NAME +READY +STATE .* WHY\n\S+ +false +InvalidTemplate .* the API server rejects the access pod: /,
      );
      await stage.runMarkerGrant();
      assert.equal(writesOf(name, since), 1);
    });
  }

  const quota: Manifest = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'small' },
    spec: { hard: { 'requests.cpu': '1' } },
  };
  const labelNamespace = (label: string): Promise<string> =>
    stage.kubectl('label', 'namespace', stage.namespace, label);
  /** What another object causes and mends. */
  const mendable: [
    title: string,
    manifest: Manifest,
    text: RegExp,
    begin: () => Promise<unknown>,
    end: () => Promise<unknown>,
  ][] = [
    [
      'a quota',
      withPod('over-quota', { resources: { requests: { cpu: '2' } } }),
      /exceeded quota: small, requested: requests\.cpu=2, used: .*, limited: requests\.cpu=1;/,
      () => stage.apply(quota),
      () => stage.kubectl('delete', 'resourcequota', 'small'),
    ],
    [
      'Pod Security',
      withPod('restricted', {}),
      /violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false \(container "app" must set /,
      () => labelNamespace('pod-security.kubernetes.io/enforce=restricted'),
      () => labelNamespace('pod-security.kubernetes.io/enforce-'),
    ],
    [
      'a missing PriorityClass',
      withPod('priority', {}, { priorityClassName: 'breakfast' }),
      /no PriorityClass with name breakfast was found;/,
      async () => undefined,
      () => stage.kubectl('create', 'priorityclass', 'breakfast', '--value=1'),
    ],
    [
      'a missing label of the namespace',
      template('privileged', {
        podSpec: { hostPID: true, containers: [container] },
        allowPrivilegedPod: true,
      }),
      /PodReachesTooFar: .* kubectl label namespace NAMESPACE access\.drawbridge\.dev\/allow-privileged=true;/,
      async () => undefined,
      () => labelNamespace('access.drawbridge.dev/allow-privileged=true'),
    ],
  ];
  /** Resolves once the condition has the reason. Changes a Service meanwhile, so that the server judges the templates of the namespace. */
  const rejudged = (name: string, reason: string): Promise<StoredRequest> => {
    let tries = 0;
    const isJudged = async (): Promise<StoredRequest | false> => {
      const metadata = { name: 'other' };
      const spec = { selector: { try: `${++tries}` }, ports: [{ port: 80 }] };
      await stage.apply({ apiVersion: 'v1', kind: 'Service', metadata, spec });
      const found = await stage.read(kind, name);
      return found !== undefined && conditionOf(found, 'AccessPlanValid')?.reason === reason && found;
    };
    return until(`${name} to be judged ${reason}`, isJudged, { timeoutMs: 30_000, everyMs: 200 });
  };

  for (const [title, manifest, text, begin, end] of mendable) {
    it(`is Reconciling because of ${title}, in one write, and ready in one more when the cause is gone`, async () => {
      await begin();
      const { name = '' } = manifest.metadata;
      await stage.apply(manifest);
      const found = await rejudged(name, 'ResourceRefused');
      assert.match(message(found).replace(/^the API server rejects the access pod: /, ''), text);
      assert(message(found).endsWith(again), message(found));
      assert.deepEqual([found.status?.ready, conditionOf(found, 'Reconciling')?.reason], [false, 'ResourceRefused']);
      const since = stage.plane.auditLog.mark();
      await end();
      assert.equal((await rejudged(name, 'Success')).status?.ready, true);
      await oneWriteOf(name, since);
    });
  }

  it('lets requests pass, which the leader decides when it creates the pod', async () => {
    await stage.apply(quota);
    const resources = { requests: { cpu: '2' } };
    await stage.apply(withPod('waiting', { resources }));
    await rejudged('waiting', 'ResourceRefused');
    await stage.kubectl('delete', 'resourcequota', 'small');
    const url = `/api/v1/namespaces/${stage.namespace}/pods?dryRun=All`;
    const pod = { metadata: { name: 'probe' }, spec: { containers: [{ ...container, resources }] } };
    // The quota applies until the API server observes its deletion.
    const isFree = async (): Promise<boolean> => (await stage.plane.call('POST', url, pod)).status === 201;
    await until('the quota to be gone', isFree, { timeoutMs: 30_000 });
    await stage.createReady(stage.alice, podRequest('once-free', { templateName: 'waiting' }));
  });

  it('leaves a request that it denies with no Event but the denial', async () => {
    await stage.apply(withPod('denying', { imagePullPolicy: 'Sometimes' }));
    await judged('denying', 'InvalidTemplate');
    const request = await stage.createOk(stage.alice, podRequest('denied', { templateName: 'denying' }));
    const denied = await stage.requestUntil(
      'to be denied',
      request,
      (now) => conditionOf(now, 'Ready')?.reason === 'Denied',
    );
    assert.match(
      message(denied, 'AccessResourcesCreated'),
      /^the API server rejected Pod access-\S+: Pod "\S+" is invalid: spec\.containers\[0\]\.imagePullPolicy: .*; ask the author of the template or an administrator, then create a new request$/,
    );
    const events = await until(
      'the Event of the denial',
      async () => {
        const printed = await stage.kubectl('events', '--for', 'podaccessrequest/denied');
        return printed.includes('ResourceRefused') && printed;
      },
      { timeoutMs: 30_000 },
    );
    assert.doesNotMatch(events, /AccessGranted/);
  });

  it('in kube-system is not stored', async () => {
    const { status, body } = await stage.plane.call('POST', accessUrl(kind, 'kube-system'), withPod('closed', {}));
    assert.equal(status, 403, JSON.stringify(body));
    assert.match(
      (body as { message: string }).message,
      /NamespaceClosed: metadata.namespace is kube-system; the server opens no access in kube-system or in its own namespace: move the workload and the template to another namespace/,
    );
  });

  describe('while a webhook for its pods gives no answer', () => {
    const silent = createServer();
    /** Mutating, because the API server calls those before it validates the pod. */
    const webhook = (url: string) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: 'silent' },
      webhooks: [
        {
          name: 'silent.example.org',
          clientConfig: { url },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': stage.namespace } },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          timeoutSeconds: 30,
        },
      ],
    });
    before((done) => void silent.listen(0, '127.0.0.1', done));
    afterEach(() => stage.plane.kubectl(['delete', 'mutatingwebhookconfiguration', 'silent']));
    after(() => void silent.close());

    const urls: [title: string, url: () => string][] = [
      // First, because no dry run follows for a while after one that hangs.
      ['but 500 from the API server', () => 'https://127.0.0.1:1/'],
      ['at all', () => `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`],
    ];
    for (const [title, url] of urls) {
      it(`${title}, has the verdict of its plan within seconds, in one write`, async () => {
        await stage.plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(webhook(url())) });
        const pods = `/api/v1/namespaces/${stage.namespace}/pods?dryRun=All&timeout=3s`;
        const pod = { metadata: { name: 'probe' }, spec: { containers: [container] } };
        // At the time limit, the API server answers 504, or closes the connection without an answer.
        const isInForce = (): Promise<boolean> =>
          stage.plane.call('POST', pods, pod).then(
            ({ status }) => status >= 500,
            () => false,
          );
        await until('the webhook to be in force', isInForce, { timeoutMs: 30_000 });
        const name = `unanswered-${url().length}`;
        const since = stage.plane.auditLog.mark();
        await stage.apply(withPod(name, { name: 'Bad_Name' }));
        const found = await judged(name, 'Success');
        assert.equal(found.status?.ready, true);
        await oneWriteOf(name, since);
      });
    }
  });

  it('names the fields that a Pod does not have, and is ready', async () => {
    await stage.apply(withPod('typo', { imagePulPolicy: 'Always' }, { restartpolicy: 'Never' }));
    const found = await judged('typo', 'FieldsIgnored');
    const ignored = message(found);
    for (const field of ['spec.containers[0].imagePulPolicy', 'spec.restartpolicy'])
      assert.ok(ignored.includes(`unknown field "${field}"`), ignored);
    assert.ok(message(found, 'Ready').endsWith(`; ${ignored}`), message(found, 'Ready'));
    assert.equal(found.status?.ready, true);
    const { stderr } = await stage.plane.kubectl(
      ['label', 'podaccesstemplate', 'typo', 'seen=true', '-n', stage.namespace],
      {},
    );
    assert.ok(stderr.includes(`Warning: ${ignored}`), stderr);
  });
});
