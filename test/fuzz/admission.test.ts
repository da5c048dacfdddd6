import assert from 'node:assert/strict';
import fc from 'fast-check';
import supertest from 'supertest';
import { routes } from '../../src/admission/routes.ts';
import { anyCharacter } from '../support/any-character.ts';
import { runs } from '../support/runs.ts';
import { accessRequest, paths, requester, reviewOf, World } from '../unit/admission/support.ts';
import { hostileValue } from './hostile-values.ts';

const world = new World();
const deciding = routes.filter((route) => !route.observeOnly).map((route) => route.path);

/** Posts raw bytes. Resolves to the status and text of the answer; rejects if none arrives in time. */
async function post(path: string, body: string): Promise<{ status: number; text: string }> {
  return supertest(world.app)
    .post(path)
    .timeout(5_000)
    .set('content-type', 'application/json')
    .serialize((sent) => sent as string)
    .send(body);
}

function assertNotAllowed(answer: { status: number; text: string }, uid?: string): void {
  assert.ok([200, 400, 413].includes(answer.status), `${answer.status}: ${answer.text}`);
  if (answer.status !== 200) return;
  const { response } = JSON.parse(answer.text);
  assert.equal(response.allowed, false, answer.text);
  assert.equal(typeof response.status.message, 'string');
  if (uid !== undefined) assert.equal(response.uid, uid);
}

const anything = fc.oneof(hostileValue, fc.constant(undefined), fc.jsonValue({ maxDepth: 4 }));

describe('fuzz: admission', function () {
  this.timeout(60_000);

  it('answers any bytes without allowing them', async () => {
    const bytes = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.json(),
      fc.constantFrom('', 'null', '[]', '{', '{}', '"', '0'),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...deciding), bytes, async (path, body) =>
        assertNotAllowed(await post(path, body)),
      ),
      { seed: 1, numRuns: runs(300) },
    );
  });

  it('answers reviews with any field replaced, without allowing a request that no user may create', async () => {
    // Without groups, the caller is in no group that a template allows.
    const base = reviewOf('podaccessrequests', 'CREATE', {
      object: accessRequest({ requester }),
      userInfo: { username: 'alice', uid: '', groups: [] },
    });
    const field = fc.constantFrom(...Object.keys(base).filter((name) => name !== 'uid' && name !== 'userInfo'));
    await fc.assert(
      fc.asyncProperty(field, anything, async (name, value) => {
        const request = { ...base, [name]: value };
        const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
        assertNotAllowed(await post(paths.validatePod, body), String(base['uid']));
      }),
      { seed: 2, numRuns: runs(400) },
    );
  });

  it('answers any object and any caller, without allowing what the webhook did not attest', async () => {
    const object = fc.oneof(
      anything,
      fc.record({ metadata: anything, spec: anything }),
      fc.record({
        metadata: anything,
        spec: fc.record({ templateName: anything, duration: anything, requester: anything }),
      }),
    );
    const user = fc.record({ username: fc.string(), uid: fc.string(), groups: fc.array(fc.string()) });
    const route = fc.constantFrom(
      [paths.validatePod, 'podaccessrequests'] as const,
      [paths.validateExec, 'execaccessrequests'] as const,
      [paths.podTemplate, 'podaccesstemplates'] as const,
      [paths.execTemplate, 'execaccesstemplates'] as const,
    );
    await fc.assert(
      fc.asyncProperty(route, object, user, async ([path, plural], found, userInfo) => {
        const request = reviewOf(plural, 'CREATE', { object: found, userInfo });
        const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
        assertNotAllowed(await post(path, body), String(request['uid']));
      }),
      { seed: 3, numRuns: runs(400) },
    );
  });

  it('never allows a changed spec', async () => {
    const stored = accessRequest({ requester });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('templateName', 'duration', 'requester'), anything, async (name, value) => {
        const object = accessRequest({ requester, [name]: value });
        // The API server treats absent, null, and default values alike.
        if (JSON.stringify(object) === JSON.stringify(stored) || (name === 'duration' && (value ?? null) === null))
          return;
        const request = reviewOf('podaccessrequests', 'UPDATE', { object, oldObject: stored });
        const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
        assertNotAllowed(await post(paths.validatePod, body));
      }),
      { seed: 4, numRuns: runs(300) },
    );
  });

  it('replaces any requester by the caller, or denies', async () => {
    await fc.assert(
      fc.asyncProperty(anything, anything, async (metadata, forged) => {
        const object = { ...accessRequest({ requester: forged }), metadata };
        const request = reviewOf('podaccessrequests', 'CREATE', { object });
        const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
        const answer = await post(paths.attestPod, body);
        if (answer.status !== 200) return assert.equal(answer.status, 400);
        const { response } = JSON.parse(answer.text);
        if (!response.allowed) return assert.match(response.status.message, /^InvalidObject: /);
        const ops = JSON.parse(Buffer.from(response.patch, 'base64').toString());
        assert.deepEqual(ops.at(-1), { op: 'add', path: '/spec/requester', value: requester });
      }),
      { seed: 5, numRuns: runs(300) },
    );
  });
});
