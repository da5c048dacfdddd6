import assert from 'node:assert/strict';
import type { AccessKind } from '../../../../src/access/access-kind.ts';
import { Memories } from '../../../../src/access/lifecycle/memory.ts';
import { Revoker, type RevokerDeps } from '../../../../src/access/lifecycle/revoker.ts';
import type { Cause } from '../../../../src/access/lifecycle/status.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import type { PodView } from '../../../../src/access/stores/cluster-views.ts';
import type { Ending } from '../../../../src/api/access/ending.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import { podAccessRequests } from '../../../../src/api/access/pod-access.ts';
import type { Result } from '../../../../src/engine/result.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { grantOf } from '../../../support/access-objects.ts';
import { podView, requestView } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const { signal } = new AbortController();
const granted = requestView({ grant: grantOf() as unknown as Grant });

/** Records every call. `fails` names the call that fails, and the code of its answer. */
function revokerOf(
  fails: { readonly call?: string; readonly code?: number } = {},
  uidUnderTheName = 'r-1',
  { pod, existed = true }: { readonly pod?: PodView; readonly existed?: boolean } = {},
): {
  revoker: Revoker;
  calls: string[];
} {
  const calls: string[] = [];
  const note = (call: string): Promise<void> => {
    calls.push(call);
    if (call !== fails.call) return Promise.resolve();
    const { code = 500 } = fails;
    return Promise.reject(new ApiError(code, code === 409 ? 'Conflict' : 'Test', `answer ${code}`));
  };
  const kind: Partial<AccessKind> = { requestResource: podAccessRequests, createsPod: true };
  const deps = {
    kind,
    pods: { get: () => pod },
    memories: new Memories(new SimulatedClock()),
    client: {
      delete: () => note('delete request'),
      jsonPatch: () => note('release'),
      get: () => note('get').then(() => ({ metadata: { uid: uidUnderTheName } })),
    },
    applier: { delete: (resource: { kind: string }) => note(`close ${resource.kind}`).then(() => existed) },
    reporter: { revoked: (_request: RequestView, { ending }: Cause) => calls.push(`report ${ending}`) },
  };
  return { revoker: new Revoker(deps as unknown as RevokerDeps), calls };
}

/** Closes the access and removes the request, as the reconciler does. */
async function end(revoker: Revoker, request: RequestView, ending: Ending): Promise<Result> {
  await revoker.close(request, { ending }, signal);
  return revoker.remove(request, signal);
}

const wholeEnd = ['close RoleBinding', 'close Role', 'close Pod', 'report Expired', 'delete request', 'release'];

describe('the end of a grant', () => {
  it('closes the RoleBinding first, and releases the request last', async () => {
    const { revoker, calls } = revokerOf();
    await end(revoker, granted, 'Expired');
    assert.deepEqual(calls, wholeEnd);
  });

  it('can close the RoleBinding before everything else, once', async () => {
    const { revoker, calls } = revokerOf();
    assert.equal(await revoker.deleteRoleBinding(granted, signal), true);
    assert.deepEqual(calls, ['close RoleBinding']);
    assert.equal(await revoker.deleteRoleBinding(granted, signal), false);
    await end(revoker, granted, 'Expired');
    assert.deepEqual(calls, wholeEnd);
  });

  it('closes nothing for a request that was never granted, or that is closed already', async () => {
    const { revoker, calls } = revokerOf();
    assert.equal(await revoker.deleteRoleBinding(requestView(), signal), false);
    await end(revoker, granted, 'Expired');
    assert.equal(await revoker.deleteRoleBinding(granted, signal), false);
    assert.deepEqual(calls, wholeEnd);
  });

  it('makes no further call while the store still shows the request', async () => {
    const { revoker, calls } = revokerOf();
    await end(revoker, granted, 'Expired');
    await end(revoker, { ...granted, deleting: true }, 'Expired');
    assert.deepEqual(calls, wholeEnd);
  });

  it('retries the last step if it failed, and closes nothing twice', async () => {
    const { revoker, calls } = revokerOf({ call: 'release', code: 503 });
    await assert.rejects(end(revoker, granted, 'Expired'));
    await assert.rejects(end(revoker, { ...granted, deleting: true }, 'Expired'));
    assert.deepEqual(calls, [...wholeEnd, 'release']);
  });

  for (const code of [409, 422]) {
    it(`tries again when the last step is answered ${code} though the request is there`, async () => {
      const { revoker, calls } = revokerOf({ call: 'release', code });
      await assert.rejects(end(revoker, granted, 'Expired'), { code });
      await assert.rejects(end(revoker, { ...granted, deleting: true }, 'Expired'), { code });
      assert.deepEqual(calls, [...wholeEnd, 'get', 'release', 'get']);
    });

    it(`is complete when the last step is answered ${code} because another request has the name`, async () => {
      const { revoker, calls } = revokerOf({ call: 'release', code }, 'r-2');
      await end(revoker, granted, 'Expired');
      assert.deepEqual(calls, [...wholeEnd, 'get']);
    });
  }

  it('deletes nothing of a request that was never granted, and reports no revocation', async () => {
    const { revoker, calls } = revokerOf();
    await end(revoker, requestView(), 'Expired');
    assert.deepEqual(calls, ['delete request', 'release']);
  });

  it('closes everything else if it may not close a RoleBinding, and reports no end', async () => {
    const { revoker, calls } = revokerOf({ call: 'close RoleBinding', code: 403 });
    assert.equal(await revoker.deleteRoleBinding(granted, signal), false);
    await assert.rejects(end(revoker, granted, 'Expired'), { code: 403 });
    assert.deepEqual(calls, ['close RoleBinding', 'close RoleBinding', 'close Role', 'close Pod']);
  });

  const marks = { uid: 'r-1', owner: { kind: 'PodAccessRequest', name: 'debug' } };
  const ofOthers = { ...marks, uid: 'r-2' };
  const pods: [string, PodView, boolean][] = [
    ['stops a Pod that has more time to end in than we give', podView({ deleting: true, requestRef: marks }), true],
    ['ignores a terminating Pod', podView({ nothingToRevoke: true, requestRef: marks }), false],
    ['is not misled by a Pod of another request', podView({ nothingToRevoke: true, requestRef: ofOthers }), true],
  ];
  for (const [title, pod, closes] of pods) {
    it(title, async () => {
      const { revoker, calls } = revokerOf({}, 'r-1', { pod });
      await end(revoker, granted, 'Expired');
      assert.equal(calls.includes('close Pod'), closes);
    });
  }

  it('is not reported again if another process closed everything and only the Pod still exists', async () => {
    const pod = podView({ nothingToRevoke: true, requestRef: marks });
    const { revoker, calls } = revokerOf({}, 'r-1', { pod, existed: false });
    await end(revoker, { ...granted, deleting: true }, 'Deleted');
    assert.deepEqual(calls, ['close RoleBinding', 'close Role', 'release']);
  });

  it('starts again with the children if one of them could not be closed', async () => {
    const { revoker, calls } = revokerOf({ call: 'close Role' });
    await assert.rejects(end(revoker, granted, 'Expired'));
    await assert.rejects(end(revoker, granted, 'Expired'));
    assert.deepEqual(calls, ['close RoleBinding', 'close Role', 'close RoleBinding', 'close Role']);
  });
});
