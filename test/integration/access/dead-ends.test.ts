import assert from 'node:assert/strict';
import { accessTemplate, targetOf, workload } from '../../support/access-manifests.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage, withoutMarker } from '../../support/access-stage.ts';
import { type AttestationOptions, attested } from '../../support/attested.ts';

interface DeadEnd {
  readonly title: string;
  readonly manifest: Manifest;
  /** The condition that is False, and its reason. */
  readonly condition: readonly [type: string, reason: string];
  /** The condition and reason if another controller is faster. */
  readonly otherwise?: DeadEnd['condition'];
  readonly message: RegExp;
  /** Default: alice of group devs. */
  readonly requester?: AttestationOptions;
}

describe('a request that can never be granted', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    const templates = [
      accessTemplate('PodAccessTemplate', 'patch-misses', {
        ...targetOf('payments'),
        controllerTargetMutationConfig: { patchSpecOperations: [{ op: 'remove', path: '/spec/containers/7' }] },
      }),
      accessTemplate('PodAccessTemplate', 'vanishing', targetOf('vanishing')),
    ];
    await stage.apply(workload('vanishing'), ...templates);
    await stage.plane.call('POST', `/api/v1/namespaces/${stage.namespace}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'stranger', labels: { app: 'stranger' } },
      spec: { containers: [{ name: 'app', image: 'busybox:1.37' }] },
    });
    await Promise.all(templates.map(({ kind, metadata: { name = '' } }) => stage.templateObserved(kind, name)));
  });
  after(() => stage?.close());

  const assertDeadEnd = async (
    request: StoredRequest,
    { condition, otherwise = condition, message }: Pick<DeadEnd, 'condition' | 'otherwise' | 'message'>,
  ): Promise<void> => {
    const isFalse = (now: StoredRequest, [type]: DeadEnd['condition']): boolean =>
      conditionOf(now, type)?.status === 'False';
    const denied = await stage.requestUntil(
      `to be denied by ${condition[0]}`,
      request,
      (now) => isFalse(now, condition) || isFalse(now, otherwise),
    );
    const [type, reason] = isFalse(denied, condition) ? condition : otherwise;
    const reported = conditionOf(denied, type);
    assert.equal(reported?.reason, reason);
    assert.match(reported?.message ?? '', message);
    assert.equal(denied.status?.ready, false);
    assert.equal(denied.status?.accessMessage ?? '', '');
    assert.deepEqual(await stage.children(request.metadata.uid), []);
    const { name } = request.metadata;
    const line = await stage.auditLine(
      'the denial',
      ({ event, verdict, what }) => event === 'grant' && verdict === 'denied' && what.name === name,
    );
    assert.equal(line.what.kind, request.kind);
  };

  const assertQuiet = async (): Promise<void> => {
    const since = stage.plane.auditLog.mark();
    await stage.runMarkerGrant();
    const all = stage.plane.auditLog.calls({ user: stage.server.installation.serverUser, since });
    const calls = withoutMarker(all)
      .filter(({ namespace, verb }) => namespace === stage.namespace && verb !== 'watch')
      // The server writes Events later, in batches.
      .filter(({ resource }) => resource !== 'events')
      // The server judges templates when it has processor time, so on a busy machine seconds after its start.
      .filter(({ resource, name }) => name !== 'template-dry-run-access' && !/accesstemplates/.test(resource))
      .map(({ verb, uri }) => `${verb} ${uri}`);
    assert.deepEqual(calls, []);
  };

  describe('gets a condition with the reason and no access:', () => {
    const deadEnds: DeadEnd[] = [
      {
        title: 'a pod that is not of the target',
        manifest: execRequest('not-of-target', { targetPod: 'stranger' }),
        condition: ['AccessResourcesCreated', 'InvalidTargetPod'],
        message: /"stranger" is not a pod of the template's workload/,
      },
      {
        title: 'a pod that does not exist, with the same message',
        manifest: execRequest('not-there', { targetPod: 'nobody' }),
        condition: ['AccessResourcesCreated', 'InvalidTargetPod'],
        message: /"nobody" is not a pod of the template's workload/,
      },
      {
        title: 'a patch that does not apply',
        manifest: podRequest('patch-misses', { templateName: 'patch-misses', duration: '10m' }),
        condition: ['AccessResourcesCreated', 'InvalidTemplate'],
        message: /patchSpecOperations\[0\]/,
      },
    ];
    for (const deadEnd of deadEnds) {
      it(deadEnd.title, async () => assertDeadEnd(await stage.createOk(stage.alice, deadEnd.manifest), deadEnd));
    }

    it('and is not retried', assertQuiet);

    it('is deleted after the requested duration', async () => {
      const request = await stage.createOk(
        stage.alice,
        execRequest('short', { targetPod: 'stranger', duration: '2s' }),
      );
      await stage.gone(request);
    });
  });

  describe('because it was created without the webhooks:', () => {
    const deadEnds: DeadEnd[] = [
      {
        title: 'a requester of no allowed group is not let in',
        manifest: podRequest('not-eligible', { duration: '10m' }),
        requester: { username: 'bob', groups: ['qa', 'system:authenticated'] },
        condition: ['AccessResourcesCreated', 'NotEligible'],
        message: /user bob is in \[qa, system:authenticated\]; template payments-shell allows \[devs, sre\]/,
      },
      {
        title: 'a template that does not exist',
        manifest: podRequest('templateless', { duration: '10m', templateName: 'nothing' }),
        condition: ['TargetTemplateExists', 'NotFound'],
        message: /nothing does not exist/,
      },
      {
        title: 'a target that vanished',
        manifest: podRequest('vanished', { duration: '10m', templateName: 'vanishing' }),
        condition: ['AccessResourcesCreated', 'TargetNotFound'],
        // If the server reconciled the template before the request.
        otherwise: ['TargetTemplateExists', 'TemplateNotReady'],
        message: /Deployment "vanishing" does not exist/,
      },
      ...['soon', '0s', '-5m'].map((duration, index) => ({
        title: `a duration of ${duration}`,
        manifest: podRequest(`odd-${index}`, { duration }),
        condition: ['AccessDurationsValid', 'NotAcceptable'] as const,
        message: /spec\.duration/,
      })),
    ];
    const squatted = ['Pod', 'Role', 'RoleBinding'] as const;
    const requests = new Map<string, StoredRequest>();
    const premade = new Map<string, string>();

    const childName = (request: StoredRequest | undefined): string =>
      `${request?.metadata.name}-${request?.metadata.uid.slice(0, 8)}-access`;

    const objectUnder = (kind: string, name: string): Promise<string> =>
      stage.kubectl(
        'get',
        kind,
        name,
        '-o',
        'jsonpath={.metadata.uid} {.metadata.resourceVersion} {.rules} {.roleRef} {.subjects}',
      );

    before(async function () {
      this.timeout(120_000);
      await stage.stop();
      await stage.removeWebhooksOnly();
      for (const { manifest, requester } of deadEnds) {
        const person = requester ? stage.bob : stage.alice;
        requests.set(manifest.metadata.name ?? '', await stage.createOk(person, attested(manifest, requester)));
      }
      for (const kind of squatted) {
        const manifest = podRequest(`squatted-${kind.toLowerCase()}`, { duration: '10m' });
        const request = await stage.createOk(stage.alice, attested(manifest));
        requests.set(kind, request);
        const name = childName(request);
        await stage.apply(squatter(kind, name));
        // The scheduler and kwok change the Pod; the test compares only the changes of the server.
        if (kind === 'Pod') await stage.kubectl('wait', `pod/${name}`, '--for=condition=Ready', '--timeout=20s');
        premade.set(kind, await objectUnder(kind, name));
      }
      await stage.kubectl('delete', 'deployment', 'vanishing');
      await stage.start();
    });

    for (const deadEnd of deadEnds) {
      it(deadEnd.title, () =>
        assertDeadEnd(requests.get(deadEnd.manifest.metadata.name ?? '') as StoredRequest, deadEnd),
      );
    }

    for (const kind of squatted) {
      it(`a foreign ${kind} has the name of its child, and the server does not change that object`, async () => {
        const request = requests.get(kind) as StoredRequest;
        await assertDeadEnd(request, {
          condition: ['AccessResourcesCreated', 'NameCollision'],
          message: new RegExp(`${kind} .*${childName(request)} exists and was not created for this request`),
        });
        assert.equal(await objectUnder(kind, childName(request)), premade.get(kind));
        assert.equal(await stage.alice.mayExec(stage.namespace, childName(request)), false);
      });
    }

    it('and is not retried', assertQuiet);
  });

  function squatter(kind: 'Pod' | 'Role' | 'RoleBinding', name: string): Manifest {
    const rbac = 'rbac.authorization.k8s.io';
    switch (kind) {
      case 'Pod':
        return {
          apiVersion: 'v1',
          kind,
          metadata: { name },
          spec: { containers: [{ name: 'app', image: 'busybox:1.37' }] },
        };
      case 'Role':
        return { apiVersion: `${rbac}/v1`, kind, metadata: { name }, rules: [] };
      case 'RoleBinding':
        return {
          apiVersion: `${rbac}/v1`,
          kind,
          metadata: { name },
          roleRef: { apiGroup: rbac, kind: 'Role', name },
          subjects: [{ apiGroup: rbac, kind: 'User', name: 'mallory' }],
        };
    }
  }
});
