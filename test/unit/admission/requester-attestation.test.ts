import assert from 'node:assert/strict';
import { own } from '../../../src/kit/json-value.ts';
import { accessRequest, alice, patched, patchOf, paths, requester, reviewOf, World } from './support.ts';

const FINALIZER = 'access.drawbridge.dev/revoke';

describe('attestation of requesters', () => {
  const world = new World();
  const create = async (object: Record<string, unknown>, fields: Record<string, unknown> = {}) => {
    const response = await world.review(
      paths.attestPod,
      reviewOf('podaccessrequests', 'CREATE', { object, ...fields }),
    );
    return { response, result: patched(object, response) };
  };
  const update = async (object: unknown, oldObject: unknown) => {
    const response = await world.review(
      paths.attestPod,
      reviewOf('podaccessrequests', 'UPDATE', { object, oldObject, userInfo: { username: 'mallory', groups: [] } }),
    );
    return { response, result: patched(object, response) };
  };

  it("names the caller as the requester and adds the server's finalizer", async () => {
    const { response, result } = await create(accessRequest());
    assert.equal(response.allowed, true);
    assert.equal(response.patchType, 'JSONPatch');
    assert.deepEqual(own(result, 'spec'), { templateName: 'payments-shell', requester });
    assert.deepEqual(own(own(result, 'metadata'), 'finalizers'), [FINALIZER]);
  });

  it('names the caller also in a dry run', async () => {
    const { result } = await create(accessRequest(), { dryRun: true });
    assert.deepEqual(own(own(result, 'spec'), 'requester'), requester);
  });

  it('overwrites any requester that the client sent', async () => {
    for (const forged of [{ username: 'root', uid: '', groups: ['system:masters'], time: 'x' }, null, 'root', [1]]) {
      const { result } = await create(accessRequest({ requester: forged }));
      assert.deepEqual(own(own(result, 'spec'), 'requester'), requester);
    }
  });

  it('drops foreign finalizers and all owner references', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'b', blockOwnerDeletion: true };
    const metadata = { finalizers: ['example.com/stay', FINALIZER], ownerReferences: [owner] };
    const { result } = await create(accessRequest({}, metadata));
    assert.deepEqual(own(result, 'metadata'), { name: 'req', namespace: 'payments', finalizers: [FINALIZER] });
  });

  it('generates the name if only generateName was sent', async () => {
    const { result } = await create(accessRequest({}, { name: undefined, generateName: 'debug-' }));
    assert.match(String(own(own(result, 'metadata'), 'name')), /^debug-[bcdfghjklmnpqrstvwxz2456789]{10}$/);
    assert.equal(own(own(result, 'metadata'), 'generateName'), 'debug-');
  });

  it('cuts a long generateName so that the name fits', async () => {
    const { result } = await create(accessRequest({}, { name: '', generateName: 'g'.repeat(80) }));
    assert.match(String(own(own(result, 'metadata'), 'name')), /^g{53}[a-z0-9]{10}$/);
  });

  it('keeps a name that was sent, and changes nothing more on a second call', async () => {
    const { result } = await create(accessRequest({}, { generateName: 'debug-' }));
    assert.equal(own(own(result, 'metadata'), 'name'), 'req');
    const again = await create(result as Record<string, unknown>);
    assert.deepEqual(again.result, result);
  });

  it('denies a caller without a name, with one audit line', async () => {
    const before = world.lines.length;
    const { response } = await create(accessRequest(), { userInfo: { ...alice, username: '' } });
    assert.equal(response.allowed, false);
    assert.equal(response.status?.code, 403);
    assert.match(response.status?.message ?? '', /^MissingIdentity: /);
    assert.equal(response.patch, undefined);
    assert.equal(world.lines.length, before + 1);
    assert.equal(world.lines.at(-1)?.verdict, 'denied');
  });

  it('writes no audit line if it only attests', async () => {
    const before = world.lines.length;
    await create(accessRequest());
    assert.equal(world.lines.length, before);
  });

  it('denies objects that it cannot attest', async () => {
    for (const object of [null, [], 'text', 7, {}, { spec: [] }, { spec: {}, metadata: 'x' }, { spec: null }]) {
      const response = await world.review(paths.attestPod, reviewOf('podaccessrequests', 'CREATE', { object }));
      assert.equal(response.allowed, false, JSON.stringify(object));
      assert.match(response.status?.message ?? '', /^InvalidObject: /);
    }
  });

  it('attests no spec that is larger than any that the API server would store', async () => {
    // 64 Ki characters, of which the weight of the object, its two values, and the names of its fields leave this many.
    const note = 'x'.repeat(64 * 1024 - 3 * 32 - 'templateName'.length - 'payments-shell'.length - 'note'.length);
    const most = await create(accessRequest({ note }));
    assert.equal(most.response.allowed, true);
    const { response } = await create(accessRequest({ note: `${note}x` }));
    assert.equal(response.allowed, false);
    assert.match(response.status?.message ?? '', /^InvalidObject: spec is larger than 65536 characters/);
  });

  it('restores the requester on UPDATE if the client omits it', async () => {
    const stored = accessRequest({ requester }, { finalizers: [FINALIZER] });
    const { result } = await update(accessRequest({}, { finalizers: [FINALIZER] }), stored);
    assert.deepEqual(result, stored);
  });

  it('does not attest again on UPDATE, even if the requester changed', async () => {
    const stored = accessRequest({ requester }, { finalizers: [FINALIZER] });
    const changed = accessRequest({ requester: { ...requester, username: 'mallory' } }, { finalizers: [FINALIZER] });
    assert.deepEqual(patchOf((await update(changed, stored)).response), []);
  });

  it('restores its finalizer on UPDATE, beside foreign ones', async () => {
    const stored = accessRequest({ requester }, { finalizers: [FINALIZER] });
    const { result } = await update(accessRequest({ requester }, { finalizers: ['example.com/x'] }), stored);
    assert.deepEqual(own(own(result, 'metadata'), 'finalizers'), ['example.com/x', FINALIZER]);
  });

  it('allows removal of the finalizer while the object is being deleted', async () => {
    const deleting = { deletionTimestamp: '2026-11-21T09:00:00Z' };
    const stored = accessRequest({ requester }, { ...deleting, finalizers: [FINALIZER] });
    const { response } = await update(accessRequest({ requester }, { ...deleting, finalizers: [] }), stored);
    assert.equal(response.allowed, true);
    assert.deepEqual(patchOf(response), []);
  });

  it('attests exec access requests, too', async () => {
    const object = accessRequest({ targetPod: 'web-0' }, {}, 'ExecAccessRequest');
    const response = await world.review(paths.attestExec, reviewOf('execaccessrequests', 'CREATE', { object }));
    const spec = own(patched(object, response), 'spec');
    assert.deepEqual(spec, { templateName: 'payments-shell', targetPod: 'web-0', requester });
  });
});
