import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../sandbox/wait.ts';
import { revokeFinalizer } from '../../../src/api/access/names.ts';
import { accessTemplate, targetOf, workload } from '../../support/access-manifests.ts';
import {
  conditionOf,
  deadlineOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';
import { accountUser } from '../../support/server-token.ts';
import { sideBySide } from '../../support/side-by-side.ts';

const short = '15s';

describe('a grant', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(async function () {
    this.timeout(120_000);
    await stage?.close();
  });

  const reaches = (instantMs: number): Promise<unknown> =>
    until('the time to come', () => Date.now() >= instantMs, { timeoutMs: 60_000, everyMs: 10 });

  /** Polls the API server as `carol`. `end` resolves to whether carol was ever allowed to exec. */
  const watchCarol = (pod: string): { end: () => Promise<boolean> } => {
    let [ended, everAllowed] = [false, false];
    const asking = (async () => {
      while (!ended) {
        everAllowed ||= await stage.carol.mayExec(stage.namespace, pod);
        await sleep(100);
      }
    })();
    return {
      async end() {
        ended = true;
        await asking;
        return everAllowed;
      },
    };
  };

  /** Runs a short grant from its creation to its end; calls `meanwhile` once the request is Ready. */
  const runGrant = async (
    manifest: Manifest,
    meanwhile: (request: StoredRequest) => Promise<unknown>,
  ): Promise<void> => {
    const request = await stage.createReady(stage.alice, manifest);
    const pod = request.status?.podName ?? '';
    const deadline = deadlineOf(request);
    const carol = watchCarol(pod);
    assert.equal(await stage.alice.mayExec(stage.namespace, pod), true);
    await meanwhile(request);
    await reaches(deadline + 1000);
    assert.equal(await stage.alice.canExec(stage.namespace, pod), 'no');
    assert.equal(await carol.end(), false);
    await stage.gone(request);
  };

  const requestThrough = async (name: string, request: string, duration: string): Promise<Manifest> => {
    await stage.apply(accessTemplate('PodAccessTemplate', name));
    await stage.templateReady('PodAccessTemplate', name);
    return podRequest(request, { templateName: name, duration });
  };

  const created = 'AccessResourcesCreated';

  const eventsOf = ({ kind, metadata: { name } }: StoredRequest): Promise<string> =>
    stage.kubectl('events', '--for', `${kind.toLowerCase()}/${name}`);

  describe('is open to the requester from Ready until at most one second after its deadline, and never to another user', () => {
    const patchTemplate = (name: string, spec: object): Promise<string> =>
      stage.kubectl('patch', 'podaccesstemplate', name, '--type=merge', '-p', JSON.stringify({ spec }));

    sideBySide([
      ['with a new pod, and records its end', ofNewPod],
      ['with a running pod, which stays', ofRunningPod],
      [
        'with a template whose target is gone',
        async () =>
          runGrant(await requestThrough('aimless', 'aimless', short), async () => {
            await patchTemplate('aimless', { controllerTargetRef: { name: 'vanished' } });
            await stage.templateReady('PodAccessTemplate', 'aimless', false);
          }),
      ],
      [
        'with a longer maximum that is written into the template meanwhile',
        async () =>
          runGrant(await requestThrough('longer', 'longer', short), () =>
            patchTemplate('longer', { accessConfig: { defaultDuration: '9h', maxDuration: '99h' } }),
          ),
      ],
      [
        'with an owner that is written into the request meanwhile',
        () => runGrant(podRequest('owned', { duration: short }), adopt),
      ],
      ['with a foreign finalizer on the request, which stays without access', withForeignFinalizer],
    ]);

    function adopt({ metadata: { name } }: StoredRequest): Promise<string> {
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'somebody', uid: '0', controller: true };
      const patch = JSON.stringify({ metadata: { ownerReferences: [owner] } });
      return stage.kubectl('patch', 'podaccessrequest', name, '--type=merge', '-p', patch);
    }

    async function ofNewPod(): Promise<void> {
      let request: StoredRequest | undefined;
      await runGrant(podRequest('plain', { duration: short }), async (ready) => {
        request = ready;
      });
      const line = await stage.endOf('plain');
      assert.deepEqual([line.verdict, line['code'], line.who.user], ['revoked', 'Expired', 'alice']);
      const isRecorded = async (): Promise<boolean> =>
        request !== undefined && (await eventsOf(request)).includes('AccessExpired');
      await until('the Event AccessExpired', isRecorded, { timeoutMs: 30_000, everyMs: 200 });
    }

    async function ofRunningPod(): Promise<void> {
      let pod = '';
      await runGrant(execRequest('running', { duration: short }), async ({ status }) => {
        pod = status?.podName ?? '';
      });
      assert.equal(await stage.kubectl('get', 'pod', pod, '-o', 'jsonpath={.status.phase}'), 'Running');
    }

    async function withForeignFinalizer(): Promise<void> {
      const request = await stage.createReady(stage.alice, podRequest('held', { duration: short }));
      const pod = request.status?.podName ?? '';
      const patch = (finalizers: unknown): Promise<string> =>
        stage.kubectl(
          'patch',
          'podaccessrequest',
          'held',
          '--type=merge',
          '-p',
          JSON.stringify({ metadata: { finalizers } }),
        );
      await patch([revokeFinalizer, 'example.com/hold']);
      await reaches(deadlineOf(request) + 1000);
      assert.equal(await stage.alice.canExec(stage.namespace, pod), 'no');
      const childless = async (): Promise<boolean> => (await stage.children(request.metadata.uid)).length === 0;
      await until('the children to be gone', childless, { timeoutMs: 30_000 });
      const held = await stage.requestUntil('to wait', request, ({ metadata }) => metadata.finalizers?.length === 1);
      assert.deepEqual(held.metadata.finalizers, ['example.com/hold']);
      await patch(null);
      await stage.gone(request);
    }
  });

  it('ends on time with a graceful restart in between', () =>
    runGrant(podRequest('restarted', { duration: '10s' }), () => stage.restart()));

  it('ends within two seconds after the server is back if its deadline passed during the downtime', async () => {
    const request = await stage.createReady(stage.alice, podRequest('downtime', { duration: '6s' }));
    const { installation } = stage.server;
    await stage.stop();
    await reaches(deadlineOf(request) + 200);
    await stage.start({ installation });
    await stage.shutTo(stage.alice, request.status?.podName ?? '', 2000);
    await stage.closed(request);
  });

  describe('ends at once, and all its objects are deleted,', () => {
    const endings: [string, string, (request: StoredRequest) => Promise<unknown>][] = [
      [
        'when the requester deletes the request',
        'Deleted',
        ({ kind, metadata: { name } }) =>
          stage.alice.kubectl(['delete', kind, name, '-n', stage.namespace, '--wait=false']),
      ],
      [
        'when the request is deleted with propagation Orphan',
        'Deleted',
        ({ kind, metadata: { name } }) => stage.kubectl('delete', kind, name, '--cascade=orphan', '--wait=false'),
      ],
      [
        'when its template is deleted',
        'TemplateDeleted',
        ({ spec }) => stage.kubectl('delete', 'podaccesstemplate', String(spec?.['templateName'])),
      ],
      [
        'when its template is deleted and recreated under the same name',
        'TemplateDeleted',
        async ({ spec }) => {
          const name = String(spec?.['templateName']);
          await stage.kubectl('delete', 'podaccesstemplate', name);
          await stage.apply(accessTemplate('PodAccessTemplate', name));
        },
      ],
      [
        'when its pod is deleted',
        'TargetPodGone',
        ({ status }) => stage.kubectl('delete', 'pod', status?.podName ?? '', '--wait=false'),
      ],
      [
        'when its pod is evicted',
        'TargetPodGone',
        ({ status }) => {
          const evicted = { status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on memory.' } };
          const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify(evicted)];
          return stage.kubectl('patch', 'pod', status?.podName ?? '', ...patch);
        },
      ],
    ];
    for (const [index, [title, code, end]] of endings.entries()) {
      it(title, async () => {
        const name = `ending-${index}`;
        const request = await stage.createReady(stage.alice, await requestThrough(name, name, '10m'));
        const pod = request.status?.podName ?? '';
        assert.equal(await stage.alice.mayExec(stage.namespace, pod), true);
        await end(request);
        await stage.shutTo(stage.alice, pod);
        await stage.closed(request);
        const line = await stage.endOf(name);
        assert.equal(line['code'], code);
        await until('the Event AccessRevoked', async () => (await eventsOf(request)).includes('AccessRevoked'), {
          timeoutMs: 30_000,
          everyMs: 200,
        });
      });
    }

    it('when its running pod is deleted, without access to another pod', async () => {
      const request = await stage.createReady(stage.alice, execRequest('pod-gone', { duration: '10m' }));
      await stage.kubectl('delete', 'pod', request.status?.podName ?? '', '--wait=false');
      await stage.closed(request);
    });

    it('when a StatefulSet replaces its running pod, without access to the new pod of that name', async function () {
      this.timeout(90_000);
      await stage.apply(
        workload('ledger', { serviceName: 'ledger' }, 'StatefulSet'),
        accessTemplate('ExecAccessTemplate', 'ledger', targetOf('ledger', 'StatefulSet')),
      );
      await stage.kubectl('rollout', 'status', 'statefulset/ledger', '--timeout=30s');
      await stage.templateReady('ExecAccessTemplate', 'ledger');
      const asked = execRequest('namesake', { templateName: 'ledger', targetPod: 'ledger-0', duration: '10m' });
      const request = await stage.createReady(stage.alice, asked);
      const before = request.status?.grant?.pod.uid;
      assert.equal(await stage.alice.mayExec(stage.namespace, 'ledger-0'), true);
      await stage.kubectl('delete', 'pod', 'ledger-0', '--wait=false');
      const uid = (): Promise<string> => stage.kubectl('get', 'pod', 'ledger-0', '-o', 'jsonpath={.metadata.uid}');
      const replaced = async (): Promise<boolean> => ![before, ''].includes(await uid().catch(() => ''));
      await until('the replaced pod', replaced, { timeoutMs: 30_000, everyMs: 50 });
      await stage.shutTo(stage.alice, 'ledger-0');
      await stage.closed(request);
      const { code } = await stage.alice.kubectl(['exec', '-n', stage.namespace, 'ledger-0', '--', 'true'], {
        reject: false,
      });
      assert.notEqual(code, 0);
      const line = await stage.endOf('namesake');
      assert.equal(line['code'], 'TargetPodGone');
    });
  });

  describe('is closed although its objects cannot be deleted:', () => {
    /** A Pod that stays until it is deleted by force, because its node has no kubelet. */
    let podOnLostNode = '';
    /** Only with its identity can a client add finalizers to objects of grants. */
    let server: Person;

    before(async function () {
      this.timeout(60_000);
      server = await accountUser(stage.plane, 'drawbridge');
      await stage.kubectl('delete', 'validatingadmissionpolicybinding', 'drawbridge-server');
      await stage.kubectl('create', 'role', 'holds', '--verb=patch', '--resource=pods,roles,rolebindings');
      await stage.kubectl('create', 'rolebinding', 'holds', '--role=holds', `--user=${server.name}`);
      await stage.allowed(server.name, { verb: 'patch', resource: 'pods' });
    });
    after(async function () {
      this.timeout(120_000);
      await stage.restoreWebhooks();
      await stage.policiesAre('in force');
    });

    const plurals = ['rolebindings', 'roles', 'pods'];
    const hold = async (pod: string, finalizers: readonly string[] | null): Promise<void> => {
      for (const plural of plurals) {
        const group = plural === 'pods' ? '/api/v1' : '/apis/rbac.authorization.k8s.io/v1';
        const url = `${group}/namespaces/${stage.namespace}/${plural}/${pod}`;
        const patch = async (query = ''): Promise<boolean> =>
          (await server.call('PATCH', `${url}${query}`, { metadata: { finalizers } })).status === 200;
        // By dry runs, because the stage takes a refused call in the name of the server for a missing permission.
        await until(`${plural} to be open to changes`, () => patch('?dryRun=All'), { timeoutMs: 30_000, everyMs: 100 });
        assert.equal(await patch(), true, plural);
      }
    };

    const endings: [string, string, string, (request: StoredRequest) => Promise<unknown>][] = [
      ['finalizers keep the pod after the deadline', '15s', 'Expired', (request) => reaches(deadlineOf(request))],
      [
        'finalizers keep the pod after a revocation',
        '10m',
        'Revoked',
        ({ kind, metadata: { name } }) =>
          stage.alice.call('PATCH', stage.urlOf(kind, name), { spec: { revoked: true } }),
      ],
    ];
    sideBySide([
      ...endings.map(
        ([title, duration, code, end], index) => [title, () => heldByFinalizers(index, duration, code, end)] as const,
      ),
      ['the node of its pod is down; the pod has one second once the node is back', whileItsNodeIsAway],
    ]);

    it('the end is recorded once, even after a restart while that pod still exists', async () => {
      await stage.restart();
      const lines = await stage.audit(({ event, what }) => {
        return event === 'revocation' && (what.name === 'away' || what.name === podOnLostNode);
      });
      assert.deepEqual(
        lines.map((line) => line['code']),
        ['Revoked'],
      );
      await stage.kubectl('delete', 'pod', podOnLostNode, '--grace-period=0', '--force');
    });

    async function whileItsNodeIsAway(): Promise<void> {
      // Binds the pod to a node without a kubelet.
      const controllerTargetMutationConfig = { podAnnotations: { 'sandbox/host': 'true' } };
      const spec = { ...targetOf('payments'), controllerTargetMutationConfig };
      await stage.apply(accessTemplate('PodAccessTemplate', 'away', spec));
      await stage.templateReady('PodAccessTemplate', 'away');
      const asked = await stage.createOk(stage.alice, podRequest('away', { templateName: 'away', duration: '10m' }));
      const { status } = await stage.requestUntil(
        'to be opened',
        asked,
        (one) => conditionOf(one, created) !== undefined,
      );
      podOnLostNode = status?.podName ?? '';
      const field = (path: string): Promise<string> =>
        stage.kubectl('get', 'pod', podOnLostNode, '-o', `jsonpath={${path}}`);
      await until('a node', async () => (await field('.spec.nodeName')) !== '', { timeoutMs: 30_000, everyMs: 50 });
      await stage.alice.call('PATCH', stage.urlOf(asked.kind, 'away'), { spec: { revoked: true } });
      const released = async (): Promise<boolean> => (await stage.read(asked.kind, 'away')) === undefined;
      await until('the request to go', released, { timeoutMs: 30_000, everyMs: 50 });
      assert.deepEqual(await stage.children(asked.metadata.uid), [{ kind: 'Pod', name: podOnLostNode }]);
      assert.equal(await field('.metadata.deletionGracePeriodSeconds'), '1');
      assert.equal(await field('.spec.terminationGracePeriodSeconds'), '1');
    }

    async function heldByFinalizers(
      index: number,
      duration: string,
      code: string,
      end: (request: StoredRequest) => Promise<unknown>,
    ): Promise<void> {
      const name = `holding-${index}`;
      const request = await stage.createReady(stage.alice, podRequest(name, { duration }));
      const pod = request.status?.podName ?? '';
      await hold(pod, ['example.com/hold']);
      assert.equal(await stage.alice.mayExec(stage.namespace, pod), true);
      await end(request);
      await stage.shutTo(stage.alice, pod);
      const line = await stage.endOf(name);
      assert.equal(line['code'], code);
      const released = async (): Promise<boolean> => (await stage.read(request.kind, name)) === undefined;
      await until('the request to go', released, { timeoutMs: 30_000, everyMs: 50 });
      const held = await stage.children(request.metadata.uid);
      assert.deepEqual(
        held.map(({ kind }) => kind),
        ['Pod', 'Role', 'RoleBinding'],
      );
      for (const plural of plurals) {
        const metadata = await stage.kubectl('get', plural, pod, '-o', 'jsonpath={.metadata.deletionTimestamp}');
        assert.notEqual(metadata, '', plural);
      }
      assert.equal(await stage.kubectl('get', 'rolebinding', pod, '-o', 'jsonpath={.subjects}'), '');
      assert.deepEqual(await stage.audit(({ what, ...one }) => what.name === pod && one['code'] === 'Orphaned'), []);
      await hold(pod, null);
      await stage.gone(request);
    }
  });
});
