import assert from 'node:assert/strict';
import { viewRequest } from '../../../../src/access/stores/access-views.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { execRequestManifest, grantOf, podRequestManifest } from '../../../support/access-objects.ts';
import { condition, createdAtMs } from '../../../support/request-views.ts';

const stored = (manifest: object, metadata: object = {}, status?: object): KubeObject => {
  const given = manifest as KubeObject;
  const read = { uid: 'r-1', resourceVersion: '100', generation: 2, creationTimestamp: '2026-11-21T09:00:00Z' };
  return {
    ...given,
    metadata: { ...given.metadata, ...read, ...metadata },
    ...(status === undefined ? {} : { status }),
  } as KubeObject;
};
const children = [{ kind: 'Role', name: 'debug-1a2b3c4d-access', uid: 'c-1' }];

describe('the view of a request', () => {
  it('has all fields of an open request', () => {
    const conditions = [condition('AccessStillValid', 'True')];
    const status = { state: 'Open', grant: grantOf(), children, conditions, ready: true };
    const view = viewRequest(stored(podRequestManifest({ duration: '30m' }), { finalizers: ['f'] }, status));
    assert.deepEqual(view, {
      key: 'payments/debug',
      uid: 'r-1',
      resourceVersion: '100',
      namespace: 'payments',
      name: 'debug',
      generation: 2,
      createdAtMs,
      ended: undefined,
      state: 'Open',
      isNameGenerated: false,
      deleting: false,
      finalizers: ['f'],
      revoked: false,
      spec: { templateName: 'payments-shell', duration: '30m' },
      grant: grantOf(),
      expiresAt: undefined,
      approval: undefined,
      reasonLink: undefined,
      extensions: [],
      children,
      conditions,
      ready: true,
    });
  });

  it('reads the other kind by its own schema', () => {
    const view = viewRequest(stored(execRequestManifest({ targetPod: 'web-0' })));
    assert.deepEqual(view?.spec, { templateName: 'payments-exec', targetPod: 'web-0' });
  });

  it('has the grant of a request with other invalid fields, so that it ends on time', () => {
    const view = viewRequest(stored(podRequestManifest({ templateName: 7 }), {}, { grant: grantOf(), ready: 'yes' }));
    assert.deepEqual(view?.grant, grantOf());
    assert.deepEqual(
      [view?.spec, view?.children, view?.conditions, view?.ready],
      [{ templateName: '' }, [], [], false],
    );
  });

  it('has the other fields of a status in which another version wrote a state', () => {
    const granted = { by: '30m', state: 'Granted', expiresAt: '2026-11-21T10:00:00Z' };
    const extensions = [granted, { by: '10m', state: 'Refused' }];
    const view = viewRequest(stored(podRequestManifest(), {}, { grant: grantOf(), children, ready: true, extensions }));
    assert.deepEqual([view?.spec.templateName, view?.children, view?.ready], ['payments-shell', children, true]);
    assert.deepEqual(view?.extensions[0], granted);
    assert.equal(view?.extensions[1]?.state, 'Denied');
  });

  it('has the revocation of a request with other invalid fields', () => {
    for (const [spec, revoked] of [
      [{ revoked: true }, true],
      [{ revoked: true, templateName: 7 }, true],
      [{ revoked: false }, false],
      [{ revoked: 'true' }, false],
      [{}, false],
    ] as const) {
      assert.equal(viewRequest(stored(podRequestManifest(spec)))?.revoked, revoked, JSON.stringify(spec));
    }
  });

  it('has no grant if it is missing or invalid', () => {
    assert.equal(viewRequest(stored(podRequestManifest()))?.grant, undefined);
    const status = { grant: grantOf({ expiresAt: undefined }) };
    assert.equal(viewRequest(stored(podRequestManifest(), {}, status))?.grant, undefined);
  });

  it('is deleting with a deletionTimestamp', () => {
    const metadata = { deletionTimestamp: '2026-11-21T09:10:00Z' };
    assert.equal(viewRequest(stored(podRequestManifest(), metadata))?.deleting, true);
  });

  for (const missing of ['uid', 'resourceVersion', 'namespace', 'creationTimestamp']) {
    it(`is undefined without ${missing}`, () => {
      assert.equal(viewRequest(stored(podRequestManifest(), { [missing]: undefined })), undefined);
    });
  }

  it('is undefined without a creation time', () => {
    assert.equal(viewRequest(stored(podRequestManifest(), { creationTimestamp: 'yesterday' })), undefined);
  });
});
