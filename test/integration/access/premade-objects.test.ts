import assert from 'node:assert/strict';
import type { HttpScript } from '../../../sandbox/http-script.ts';
import { until } from '../../../sandbox/wait.ts';
import { macAnnotation, planHashAnnotation, requestLabel } from '../../../src/api/access/names.ts';
import { conditionOf, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

const rbac = 'rbac.authorization.k8s.io';

/** The child that a user with read access to the request could forge. */
function lookalike(kind: string, request: StoredRequest, mac: string | undefined): Manifest {
  const { name, uid } = request.metadata;
  const childName = `${name}-${uid.slice(0, 8)}-access`;
  const metadata = {
    name: childName,
    labels: { [requestLabel]: uid },
    annotations: {
      [planHashAnnotation]: request.status?.grant?.planHash ?? '',
      ...(mac === undefined ? {} : { [macAnnotation]: mac }),
    },
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

describe('an object that another client creates in advance under the name of a child', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await stage.removePolicies();
  });
  after(() => stage?.close());

  /** Creates a request, and kills the server right after it has stored its decision. */
  const decided = async (name: string): Promise<StoredRequest> => {
    const { installation } = stage.server;
    let [deciding, dead] = [false, false];
    const script: HttpScript = {
      onRequest: ({ method, path }) => {
        if (dead) return 'cut';
        deciding =
          method === 'PATCH' && path.includes(`/namespaces/${stage.namespace}/podaccessrequests/${name}/status`);
        dead = deciding;
        return deciding ? 'cut-answer' : 'pass';
      },
    };
    const proxy = await stage.plane.proxy(script);
    await stage.stop();
    await stage.start({ installation, apiserver: proxy.server });
    const request = await stage.createOk(stage.alice, podRequest(name, { duration: '10m' }));
    // Waits for the stored status, because the proxy may not have forwarded the write yet.
    const stored = await stage.requestUntil('to be decided', request, ({ status }) => status?.grant !== undefined);
    assert.ok(dead);
    await stage.server.kill();
    await proxy.close();
    return stored;
  };

  const forgeries: [string, string, string | undefined][] = [
    ['Pod', 'without a MAC', undefined],
    ['Role', 'without a MAC', undefined],
    ['RoleBinding', 'without a MAC', undefined],
    ['Role', 'with a MAC of its own making', 'x'.repeat(43)],
  ];
  for (const [index, [kind, how, mac]] of forgeries.entries()) {
    it(`a ${kind} with the right owner and plan hash, ${how}, is not adopted, and grants nothing`, async () => {
      const request = await decided(`premade-${index}`);
      const { installation } = stage.server;
      const forged = lookalike(kind, request, mac);
      const { name = '' } = forged.metadata;
      await stage.apply(forged);
      await stage.start({ installation });
      const denied = await stage.requestUntil(
        'to be denied',
        request,
        (now) => conditionOf(now, 'AccessResourcesCreated')?.status === 'False',
      );
      assert.equal(conditionOf(denied, 'AccessResourcesCreated')?.reason, 'NameCollision');
      // The server deletes an object that claims to belong to the request together with the grant.
      const isGone = async (): Promise<boolean> => (await stage.children(request.metadata.uid)).length === 0;
      await until('the children to be gone', isGone, { timeoutMs: 30_000 });
      assert.equal(await stage.alice.mayExec(stage.namespace, name), false);
    });
  }
});
