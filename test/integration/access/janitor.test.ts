import assert from 'node:assert/strict';
import type { AuditLine } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { accountUser } from '../../support/server-token.ts';

const promisedMs = 60_000;

describe('the objects of a request that was removed by force are deleted', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });

  after(() => stage?.close());

  const kindsLeft = async ({ metadata }: StoredRequest): Promise<string[]> =>
    (await stage.children(metadata.uid)).map(({ kind }) => kind);

  const mayExec = ({ status }: StoredRequest): Promise<boolean> =>
    stage.alice.mayExec(stage.namespace, status?.podName ?? '');

  /** Deletes the request with `Orphan` and removes every finalizer until it is gone. */
  const forceAway = async ({ kind, metadata: { name, uid } }: StoredRequest): Promise<void> => {
    const url = stage.urlOf(kind, name);
    await stage.plane.call('DELETE', url, { preconditions: { uid }, propagationPolicy: 'Orphan' });
    const gone = async (): Promise<boolean> => {
      await stage.plane.call('PATCH', url, { metadata: { finalizers: null } });
      return (await stage.read(kind, name)) === undefined;
    };
    await until(`${kind} ${name} to be forced away`, gone, { timeoutMs: 15_000, everyMs: 25 });
  };

  /** As the garbage collector after `Orphan`; otherwise, it may delete the children before the server starts. */
  const removeOwner = async ({ metadata }: StoredRequest): Promise<void> => {
    const collector = await accountUser(stage.plane, 'generic-garbage-collector', 'kube-system');
    for (const { kind, name } of await stage.children(metadata.uid)) {
      const group = kind === 'Pod' ? '/api/v1' : '/apis/rbac.authorization.k8s.io/v1';
      const url = `${group}/namespaces/${stage.namespace}/${kind.toLowerCase()}s/${name}`;
      const { status, body } = await collector.call('PATCH', url, { metadata: { ownerReferences: null } });
      assert.equal(status, 200, JSON.stringify(body));
    }
  };

  const untilNothingIsLeft = async (request: StoredRequest, timeoutMs: number): Promise<number> => {
    const since = Date.now();
    const nothing = async (): Promise<boolean> => (await kindsLeft(request)).length === 0 && !(await mayExec(request));
    await until(`nothing of ${request.metadata.name} to be left`, nothing, { timeoutMs, everyMs: 25 });
    return Date.now() - since;
  };

  const manifests: Manifest[] = [
    podRequest('forced-pod', { duration: '10m' }),
    execRequest('forced-exec', { duration: '10m' }),
  ];

  for (const manifest of manifests) {
    it(`${manifest.kind}, while the server runs: at once`, async () => {
      const request = await stage.createReady(stage.alice, manifest);
      await forceAway(request);
      const tookMs = await untilNothingIsLeft(request, promisedMs);
      console.log(`      ${tookMs} ms`);
      assert.ok(tookMs < 2000, `${tookMs} ms`);
      const isEnd = ({ event, what }: AuditLine): boolean =>
        event === 'revocation' && (what.name ?? '').startsWith(request.metadata.name);
      await stage.auditLine('the end', isEnd);
      const audited = await stage.audit(isEnd);
      assert.equal(audited.length, 1, 'one line, from the loop that knew the request');
      assert.equal(audited[0]?.who.user, 'alice');
    });
  }

  it('while no server runs: when the server starts, by their labels and annotations alone', async () => {
    const asked = manifests.map((manifest) => stage.createReady(stage.alice, manifest));
    const kept = await stage.createReady(stage.alice, podRequest('kept', { duration: '10m' }));
    const requests = await Promise.all(asked);
    await stage.server.kill();
    await stage.removeWebhooksOnly();
    for (const request of requests) {
      await removeOwner(request);
      await forceAway(request);
      assert.ok((await kindsLeft(request)).length >= 2, 'Orphan leaves the children');
      assert.equal(await mayExec(request), true);
    }
    await stage.start();
    for (const request of requests) {
      console.log(`      ${await untilMarked(request)} ms after the start`);
    }
    assert.deepEqual((await kindsLeft(kept)).sort(), ['Pod', 'Role', 'RoleBinding']);
    assert.equal(await mayExec(kept), true);

    const orphaned = (): Promise<AuditLine[]> => stage.audit((line) => line['code'] === 'Orphaned');
    await until('a line for each object', async () => (await orphaned()).length >= 5, { timeoutMs: 30_000 });
    const audited = await orphaned();
    const objects = audited.map(({ what }) => what.kind);
    assert.deepEqual(objects.toSorted(), ['Pod', 'Role', 'Role', 'RoleBinding', 'RoleBinding']);
    assert.ok(audited.every(({ event, verdict }) => event === 'revocation' && verdict === 'revoked'));
  });

  async function untilMarked(request: StoredRequest): Promise<number> {
    const since = Date.now();
    const nothing = async (): Promise<boolean> => (await kindsLeft(request)).length === 0 && !(await mayExec(request));
    await until(`nothing of ${request.metadata.name} to be left`, nothing, { timeoutMs: 30_000, everyMs: 25 });
    return Date.now() - since;
  }
});
