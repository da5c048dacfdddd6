import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { planHashAnnotation } from '../../../src/api/access/names.ts';
import { conditionOf, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

const rbac = 'rbac.authorization.k8s.io';

/** As a user with read access to the request could forge it. Only the server may set its label. */
function lookalike(kind: string, request: StoredRequest): Manifest {
  const { name, uid } = request.metadata;
  const childName = `${name}-${uid.slice(0, 8)}-access`;
  const metadata = {
    name: childName,
    annotations: { [planHashAnnotation]: request.status?.grant?.planHash ?? '' },
    ownerReferences: [{ apiVersion: 'crds.wizardofoz.co/v1alpha1', kind: request.kind, name, uid, controller: true }],
  };
  switch (kind) {
    case 'Pod':
      return {
        apiVersion: 'v1',
        kind,
        metadata,
        spec: { containers: [{ name: 'app', image: 'evil:1' }] },
      };
    case 'Role':
      return {
        apiVersion: `${rbac}/v1`,
        kind,
        metadata,
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
      };
    default:
      return {
        apiVersion: `${rbac}/v1`,
        kind,
        metadata,
        roleRef: { apiGroup: rbac, kind: 'Role', name: childName },
        subjects: [{ apiGroup: rbac, kind: 'User', name: 'mallory' }],
      };
  }
}

const kinds = ['Pod', 'Role', 'RoleBinding'];
const isCreationOfChild = (method: string, path: string): boolean =>
  method === 'POST' && /\/(pods|roles|rolebindings)(\?|$)/.test(path) && !path.includes('dryRun');

describe('an object that another client creates in advance under the name of a child', () => {
  let stage: AccessStage;
  let requests: readonly StoredRequest[];

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    const { installation } = stage.server;
    const proxy = await stage.plane.proxy({
      onRequest: ({ method, path }) => (isCreationOfChild(method, path) ? 'cut' : 'pass'),
    });
    await stage.stop();
    await stage.start({ installation, apiserver: proxy.server });
    requests = await Promise.all(kinds.map((_, index) => decided(`premade-${index}`)));
    await stage.server.kill();
    await proxy.close();
    await stage.apply(...kinds.map((kind, index) => lookalike(kind, requestOf(index))));
    await stage.start({ installation });
  });
  after(() => stage?.close());

  /** A request with a grant, without its objects. */
  const decided = async (name: string): Promise<StoredRequest> => {
    const request = await stage.createOk(stage.alice, podRequest(name, { duration: '10m' }));
    return stage.requestUntil('to be decided', request, ({ status }) => status?.grant !== undefined);
  };
  const requestOf = (index: number): StoredRequest => {
    const request = requests[index];
    assert.ok(request);
    return request;
  };

  for (const [index, kind] of kinds.entries()) {
    it(`a ${kind} with the right owner and plan hash is not adopted, and grants nothing`, async () => {
      const request = requestOf(index);
      const denied = await stage.requestUntil(
        'to be denied',
        request,
        (now) => conditionOf(now, 'AccessResourcesCreated')?.status === 'False',
      );
      assert.equal(conditionOf(denied, 'AccessResourcesCreated')?.reason, 'NameCollision');
      const childless = async (): Promise<boolean> => (await stage.children(request.metadata.uid)).length === 0;
      await until('the children to be gone', childless, { timeoutMs: 30_000 });
      const { name = '' } = lookalike(kind, request).metadata;
      assert.equal(await stage.alice.mayExec(stage.namespace, name), false);
    });
  }
});
