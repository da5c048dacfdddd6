import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { keySecretName } from '../../../src/access/signing/key-secret.ts';
import type { Grant } from '../../../src/api/access/grant.ts';
import { canonicalJson } from '../../../src/kit/canonical-json.ts';
import { own } from '../../../src/kit/json-value.ts';
import { execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('a status that the server did not write', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await stage.removePolicies();
  });
  after(() => stage?.close());

  /** Writes a status as a cluster administrator; rejects with the API server's message. */
  const writeStatus = ({ kind, metadata: { name } }: StoredRequest, status: object): Promise<string> =>
    stage.kubectl('patch', kind, name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }));

  /** Creates a request that the server denies, so that it has no grant. */
  const ungranted = async (name: string): Promise<StoredRequest> => {
    const request = await stage.createOk(stage.alice, execRequest(name, { targetPod: 'nobody', duration: '10m' }));
    return stage.requestUntil('to be denied', request, ({ status }) => (status?.conditions ?? []).length > 0);
  };

  const victim = async (): Promise<string> =>
    stage.kubectl('get', 'pods', '-l', 'app=payments', '-o', 'jsonpath={.items[0].metadata.name}');

  const assertRevoked = async (request: StoredRequest): Promise<void> => {
    const { uid } = request.metadata;
    await stage.closed(request);
    assert.deepEqual(await stage.children(uid), []);
    const line = await stage.auditLine(
      'the revocation',
      ({ event, what }) => event === 'revocation' && what['uid' as 'name'] === uid,
    );
    assert.equal(line['code'], 'GrantInvalid');
    assert.deepEqual(
      await stage.audit(({ verdict, what }) => verdict === 'granted' && what['uid' as 'name'] === uid),
      [],
    );
  };

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

  it('with a grant that the server did not sign is revoked', async () => {
    const request = await ungranted('invented');
    const template = await stage.read('ExecAccessTemplate', 'payments-exec');
    const grant = {
      template: { kind: 'ExecAccessTemplate', name: 'payments-exec', uid: template?.metadata.uid, generation: 1 },
      subjects: [{ kind: 'User', name: 'bob' }],
      pod: { name: await victim() },
      rules: [],
      planHash: 'c0ffee',
      expiresAt: '2099-01-01T00:00:00Z',
      mac: 'x'.repeat(43),
    };
    await writeStatus(request, { grant, conditions: [] });
    await assertRevoked(request);
    assert.equal(await stage.bob.mayExec(stage.namespace, await victim()), false);
  });

  it('can be distinguished from a grant of the server with only the listed public keys', async () => {
    const request = await stage.createReady(stage.alice, podRequest('signed', { duration: '10m' }));
    const url = `/api/v1/namespaces/drawbridge-system/configmaps/${keySecretName}`;
    const keys = Object.keys(own((await stage.plane.call('GET', url)).body, 'data') ?? {});
    const { name, uid } = request.metadata;
    const { namespace } = stage;
    const { mac: _, signature = '', ...grant } = own(request.status, 'grant') as Grant;
    assert.equal(keys.length, 2);
    const verifies = (what: object): boolean => {
      const text = `drawbridge.dev/grant-signature/v1\n${canonicalJson({ namespace, name, uid, grant: { ...grant, ...what } })}`;
      return keys.some((x) => {
        const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
        return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
      });
    };
    assert.equal(verifies({}), true);
    assert.equal(verifies({ subjects: [{ kind: 'User', name: 'bob' }] }), false);
  });

  it('with the grant of another request is revoked', async () => {
    const model = await stage.createReady(stage.carol, execRequest('model', { duration: '10m' }));
    const request = await ungranted('borrowed');
    await writeStatus(request, { grant: model.status?.grant, conditions: [] });
    await assertRevoked(request);
    assert.equal((await stage.read(model.kind, 'model'))?.status?.ready, true);
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
