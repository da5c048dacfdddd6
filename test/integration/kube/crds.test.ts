import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { whenCrdsServed } from '../../../sandbox/readiness.ts';
import {
  execRequestManifest,
  execTemplateManifest,
  grantOf,
  podRequestManifest,
  podTemplateManifest,
} from '../../support/access-objects.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

const path = (relative: string): string => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));

interface Stored {
  metadata: { name: string; resourceVersion: string };
  spec: Record<string, unknown>;
  status?: Record<string, unknown>;
}

describe('the CRDs on a real apiserver', () => {
  let plane: Plane;
  let namespace: string;

  before(async function () {
    this.timeout(180_000);
    plane = await sharedPlane();
    // Webhooks of another test file would receive each write; this file tests only the CRDs.
    for (const kind of ['mutating', 'validating']) {
      await plane.kubectl(['delete', `${kind}webhookconfigurations`, '--ignore-not-found', '--all']);
    }
    const crds = path('charts/drawbridge/files/crds');
    await plane.kubectl(['apply', '-f', crds]);
    await whenCrdsServed(plane, [crds]);
    namespace = await testNamespace('crds');
  });

  const kubectl = async (...args: string[]): Promise<string> =>
    (await plane.kubectl(['--namespace', namespace, ...args])).stdout;

  const urlOf = (manifest: { kind: string }): string =>
    `/apis/crds.wizardofoz.co/v1alpha1/namespaces/${namespace}/${manifest.kind.toLowerCase()}s`;

  const create = (manifest: { kind: string; metadata: object }, name: string): Promise<ApiAnswer> =>
    plane.call('POST', urlOf(manifest), { ...manifest, metadata: { name, namespace } });

  const createOk = async (manifest: { kind: string; metadata: object }, name: string): Promise<Stored> => {
    const { status, body } = await create(manifest, name);
    assert.equal(status, 201, JSON.stringify(body));
    return body as Stored;
  };

  const assertRefused = ({ status, body }: ApiAnswer, message: RegExp): void => {
    assert.equal(status, 422, JSON.stringify(body));
    assert.match((body as { message: string }).message, message);
  };

  it('keep a podSpec and any value of a JSON patch', async () => {
    const podSpec = { containers: [{ name: 'a', image: 'b', future: { field: [null, 1] } }] };
    const patchSpecOperations = [null, 1, 'x', [1], { a: null }].map((value) => ({
      op: 'add',
      path: '/spec/x',
      value,
    }));
    const { spec } = await createOk(
      podTemplateManifest({
        podSpec,
        controllerTargetMutationConfig: { patchSpecOperations },
        maxCpu: 2,
        maxMemory: '1Gi',
      }),
      'values',
    );
    assert.deepEqual(spec['podSpec'], podSpec);
    const mutation = spec['controllerTargetMutationConfig'] as { patchSpecOperations: unknown };
    assert.deepEqual(mutation.patchSpecOperations, patchSpecOperations);
  });

  describe('durations of templates', () => {
    const template = (defaultDuration: string, maxDuration: string): ReturnType<typeof execTemplateManifest> =>
      execTemplateManifest({ accessConfig: { allowedGroups: ['devs'], defaultDuration, maxDuration } });

    for (const [index, duration] of ['1.5h', '1µs'].entries()) {
      it(`accept ${duration}`, () => createOk(template(duration, duration), `duration-${index}`));
    }

    const badDuration = /accessConfig\.maxDuration: Invalid value: .*must be a Go duration of at least 1s, such as 30m/;
    for (const duration of ['', '1d', '0s']) {
      it(`reject ${JSON.stringify(duration)}`, async () =>
        assertRefused(await create(template('1h', duration), 'refused'), badDuration));
    }

    it('reject values that overflow a duration', async () =>
      assertRefused(await create(template('1h', '99999999h'), 'refused'), /spec\.accessConfig/));

    it('reject a default above the maximum', async () =>
      assertRefused(
        await create(template('2h', '119m'), 'refused'),
        /accessConfig\.defaultDuration: Invalid value: 2h is longer than maxDuration 119m; lower defaultDuration/,
      ));
  });

  it('accept any duration of a request, because the webhook denies it with a code', () =>
    createOk(podRequestManifest({ duration: '1 fortnight' }), 'odd-duration'));

  const wrongTemplates: [string, object, RegExp][] = [
    [
      'neither target nor podSpec',
      { controllerTargetRef: undefined },
      /has no target; set controllerTargetRef.*or podSpec/,
    ],
    [
      'a copy from nowhere',
      { controllerTargetMutationConfig: { patchSpecOperations: [{ op: 'copy', path: '/spec/a' }] } },
      /patchSpecOperations\[0\]\.from: Required value/,
    ],
  ];
  for (const [title, spec, message] of wrongTemplates) {
    it(`reject a template with ${title}`, async () =>
      assertRefused(await create(podTemplateManifest({ ...spec }), 'refused'), message));
  }

  describe('a request', () => {
    const requester = { username: 'alice', uid: '', groups: ['devs'], time: '2026-11-21T09:00:00Z' };
    let stored: Stored;

    before(async () => {
      stored = await createOk(execRequestManifest({ duration: '10m', requester }), 'final');
    });

    const changes: [string, Record<string, unknown>][] = [
      ['another template', { templateName: 'other' }],
      ['another requester', { requester: { ...requester, username: 'mallory' } }],
      ['no requester any more', { requester: undefined }],
    ];
    for (const [title, change] of changes) {
      it(`cannot get ${title}`, async () => {
        const changed = { ...stored, spec: { ...stored.spec, ...change } };
        const answer = await plane.call('PUT', `${urlOf(execRequestManifest())}/final`, changed);
        assertRefused(answer, /SpecImmutable: only claimed, extensions, and revoked with its reason can change; /);
      });
    }

    it('can get labels', () => kubectl('label', 'execaccessrequest', 'final', 'a=b'));

    it('may have a requester with many groups, and can still be updated', async () => {
      const groups = Array.from({ length: 1024 }, (_, index) => `group-${index}`.padEnd(256, '-'));
      const crowd = await createOk(podRequestManifest({ requester: { ...requester, groups } }), 'crowd');
      assert.equal((crowd.spec['requester'] as { groups: string[] }).groups.length, 1024);
      await kubectl('label', 'podaccessrequest', 'crowd', 'a=b');
    });
  });

  describe('a grant', () => {
    /** Replaces the current object, so that only the rules can deny it. */
    const writeStatus = async (status: unknown): Promise<ApiAnswer> => {
      const url = `${urlOf(podRequestManifest())}/granted`;
      const { body } = await plane.call('GET', url);
      return plane.call('PUT', `${url}/status`, { ...(body as Stored), status });
    };

    before(async () => {
      await createOk(podRequestManifest(), 'granted');
      const status = { ready: true, podName: 'granted-1a2b3c4d-access', grant: grantOf() };
      assert.equal((await writeStatus(status)).status, 200);
    });

    const changes: [string, unknown][] = [
      ['a later deadline', { grant: grantOf({ expiresAt: '2027-01-01T00:00:00Z' }) }],
      ['another subject', { grant: grantOf({ subjects: [{ kind: 'Group', name: 'system:authenticated' }] }) }],
      ['removed with the whole status', undefined],
    ];
    for (const [title, status] of changes) {
      it(`cannot get ${title}`, async () =>
        assertRefused(
          await writeStatus(status),
          /status\.grant: Forbidden: status\.grant is immutable once it is set/,
        ));
    }

    it('does not block other changes of the status', async () => {
      const condition = { type: 'AccessMessage', status: 'True', reason: 'Success', message: '' };
      const conditions = [{ ...condition, lastTransitionTime: '2026-11-21T09:00:00Z' }];
      const status = { ready: true, podName: 'granted-1a2b3c4d-access', grant: grantOf(), conditions };
      const answer = await writeStatus(status);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    });

    it('shows in the columns of kubectl get', async () => {
      const [header = '', row = ''] = (await kubectl('get', 'podaccessrequest', 'granted')).trim().split('\n');
      assert.deepEqual(header.split(/\s+/), ['NAME', 'TEMPLATE', 'POD', 'READY', 'STATE', 'WHO', 'UNTIL', 'AGE']);
      assert.deepEqual(row.split(/\s+/).slice(0, 4), ['granted', 'payments-shell', 'granted-1a2b3c4d-access', 'true']);
    });
  });

  it('accept the examples', async () => {
    // The tests of access apply the others.
    for (const name of ['pod-access-request', 'exec-access-request']) {
      const manifests = readFileSync(path(`examples/${name}.yaml`), 'utf8');
      const input = manifests.replaceAll('namespace: payments', `namespace: ${namespace}`);
      await plane.kubectl(['apply', '--dry-run=server', '-f', '-'], { input });
    }
  });
});
