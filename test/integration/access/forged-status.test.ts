import assert from 'node:assert/strict';
import { execRequest, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';
import { accountUser } from '../../support/server-token.ts';

const approved: Manifest = {
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'ExecAccessTemplate',
  metadata: { name: 'approved' },
  spec: {
    accessConfig: { allowedGroups: ['devs'], approvals: { all: [{ name: 'peer' }] } },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
  },
};

describe('a status that the server did not write', () => {
  let stage: AccessStage;
  /** A client with the identity of the server: policies deny all others. */
  let server: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    server = await accountUser(stage.plane, 'drawbridge');
    await stage.apply(approved);
    await stage.templateReady('ExecAccessTemplate', 'approved');
  });
  after(() => stage?.close());

  const writeStatus = async ({ kind, metadata: { name } }: StoredRequest, status: object): Promise<void> => {
    const { status: code, body } = await server.call('PATCH', `${stage.urlOf(kind, name)}/status`, { status });
    if (code !== 200) throw new Error(JSON.stringify(body));
  };

  /** A request that waits for an approval. */
  const ungranted = async (name: string): Promise<StoredRequest> => {
    const request = await stage.createOk(stage.alice, execRequest(name, { templateName: 'approved', duration: '10m' }));
    return stage.requestUntil('to wait', request, ({ status }) => (status?.conditions ?? []).length > 0);
  };

  const victim = async (): Promise<string> =>
    stage.kubectl('get', 'pods', '-l', 'app=payments', '-o', 'jsonpath={.items[0].metadata.name}');

  it('that names another pod opens no pod', async () => {
    const request = await stage.createReady(stage.alice, podRequest('renamed', { duration: '10m' }));
    const pod = await victim();
    await writeStatus(request, { podName: pod });
    await stage.runMarkerGrant();
    assert.equal(await stage.alice.mayExec(stage.namespace, pod), false);
    assert.equal(await stage.alice.mayExec(stage.namespace, request.status?.podName ?? ''), true);
    await stage.alice.call('DELETE', stage.urlOf(request.kind, 'renamed'));
    await stage.closed(request);
  });

  it('with a grant is refused, also from an administrator', async () => {
    const model = await stage.createReady(stage.carol, execRequest('model', { duration: '10m' }));
    const request = await ungranted('borrowed');
    const url = `${stage.urlOf(request.kind, 'borrowed')}/status`;
    const { status, body } = await stage.plane.call('PATCH', url, { status: { grant: model.status?.grant } });
    assert.equal(status, 403);
    assert.match(JSON.stringify(body), /StatusReserved: /);
  });

  it('cannot change a grant', async () => {
    const request = await stage.createReady(stage.alice, execRequest('longer', { duration: '10m' }));
    const longer = writeStatus(request, { grant: { expiresAt: '2099-01-01T00:00:00Z' } });
    await assert.rejects(longer, /status.grant is immutable once it is set/);
  });

  it('that names foreign children: the server deletes only its own objects', async () => {
    const request = await stage.createReady(stage.alice, podRequest('misled', { duration: '10m' }));
    const pod = await victim();
    const uid = await stage.kubectl('get', 'pod', pod, '-o', 'jsonpath={.metadata.uid}');
    const children = ['Pod', 'Role', 'RoleBinding'].map((kind) => ({ kind, name: pod, uid }));
    await writeStatus(request, { children });
    await stage.alice.call('DELETE', stage.urlOf(request.kind, 'misled'));
    await stage.closed(request);
    assert.equal(await stage.kubectl('get', 'pod', pod, '-o', 'jsonpath={.metadata.uid}'), uid);
    assert.equal(await stage.alice.mayExec(stage.namespace, request.status?.podName ?? ''), false);
  });
});
