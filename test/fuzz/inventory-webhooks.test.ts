import assert from 'node:assert/strict';
import fc from 'fast-check';
import supertest from 'supertest';
import { runs } from '../support/runs.ts';
import { paths, reviewOf, World } from '../unit/admission/support.ts';
import { hostileValue } from './hostile-values.ts';

const anything = fc.oneof(hostileValue, fc.constant(undefined), fc.jsonValue({ maxDepth: 5 }));
const entry = fc.oneof(
  anything,
  fc.record({ metadata: anything, spec: anything, status: anything }),
  fc.record({ metadata: fc.record({ uid: anything }), status: fc.record({ outputs: anything, conditions: anything }) }),
);
const account = 'system:serviceaccount:fleet:inventory-0b0e3c1e-8b7e-4c7c-9a63-4c1f7a1f0001.network';
const caller = fc.oneof(
  fc.constant({ username: account, extra: { 'authentication.kubernetes.io/credential-id': ['JTI=1'] } }),
  fc.record({
    username: fc.oneof(fc.constant(account), fc.string()),
    uid: hostileValue,
    groups: anything,
    extra: anything,
  }),
);

async function answer(world: World, path: string, request: object): Promise<{ status: number; allowed?: boolean }> {
  const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
  const { status, text } = await supertest(world.app)
    .post(path)
    .timeout(5_000)
    .set('content-type', 'application/json')
    .serialize((sent) => sent as string)
    .send(body);
  assert.ok([200, 400, 413].includes(status), `${status}: ${text}`);
  if (status !== 200) return { status };
  const { response } = JSON.parse(text);
  assert.notEqual(response.status?.code, 500, text);
  return { status, allowed: response.allowed };
}

describe('fuzz: webhooks of the inventory', function () {
  this.timeout(60_000);

  it('deny every write of a component without a run', async () => {
    const world = new World();
    const property = fc.asyncProperty(entry, entry, caller, async (object, oldObject, userInfo) => {
      const fields = { subResource: 'status', namespace: 'fleet', object, oldObject, userInfo };
      const { allowed } = await answer(world, paths.fence, reviewOf('clusterinventories', 'UPDATE', fields));
      assert.notEqual(allowed, true);
    });
    await fc.assert(property, { seed: 1, numRuns: runs(300) });
  });

  for (const [path, plural] of [
    [paths.size, 'clusterinventories'],
    [paths.attestEntry, 'clusterinventories'],
    [paths.registration, 'componentreconcilers'],
  ] as const) {
    it(`answer for any object at ${path}`, async () => {
      const world = new World();
      const property = fc.asyncProperty(
        fc.constantFrom('CREATE', 'UPDATE'),
        entry,
        entry,
        caller,
        async (operation, object, oldObject, userInfo) => {
          await answer(world, path, reviewOf(plural, operation, { object, oldObject, userInfo }));
        },
      );
      await fc.assert(property, { seed: 2, numRuns: runs(200) });
    });
  }
});
