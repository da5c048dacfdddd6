import assert from 'node:assert/strict';
import fc from 'fast-check';
import { planPodAccess } from '../../src/access/builders/pod-access.ts';
import { deepFreeze } from '../support/deep-freeze.ts';
import { runs } from '../support/runs.ts';
import { planInput } from './plan.ts';

/** Keys that builders read, and keys that break careless code. */
const keys = [
  'metadata',
  'spec',
  'containers',
  'initContainers',
  'name',
  'labels',
  'annotations',
  'env',
  'resources',
  'limits',
  'requests',
  'cpu',
  'volumes',
  'volumeMounts',
  'hostPath',
  'path',
  'securityContext',
  'privileged',
  'capabilities',
  'add',
  'ports',
  'hostPort',
  'nodeName',
  'serviceAccountName',
  'hostNetwork',
  'code',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  '0',
];
const scalar = fc.oneof(
  fc.constantFrom(null, true, false, 0, 1, -1, 1e308, '', 'app', '1', '-5Gi'),
  fc.string({ maxLength: 6 }),
);
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    // Hostile keys arrive by JSON.parse, which makes __proto__ an own property.
    fc.array(fc.tuple(fc.constantFrom(...keys), tie('value')), { maxLength: 5 }).map((entries) => fromEntries(entries)),
  ),
})).value;
const fromEntries = (entries: readonly (readonly [string, unknown])[]): unknown =>
  JSON.parse(`{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`);

const strings = fc.dictionary(fc.constantFrom('a', 'constructor', 'toString'), fc.string({ maxLength: 4 }), {
  noNullPrototype: true,
});
/** Sometimes any value, otherwise a valid one. */
const mostly = (fitting: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 9, arbitrary: fitting }, { weight: 1, arbitrary: json });
const amounts = fc.dictionary(fc.constantFrom('cpu', 'memory'), fc.constantFrom<unknown>('1', '500m', 2, '64Gi'), {
  noNullPrototype: true,
});
const resources = fc.record({ limits: amounts, requests: amounts }, { requiredKeys: [], noNullPrototype: true });

/** Mostly a pod template, with any value in the fields that the builders read. */
const podTemplate = fc.oneof(
  { weight: 1, arbitrary: json },
  {
    weight: 4,
    arbitrary: fc
      .tuple(mostly(strings), mostly(strings), json, mostly(resources), json)
      .map(([labels, annotations, env, resources, securityContext]) => ({
        metadata: { labels, annotations },
        spec: { containers: [{ name: 'app', env, resources, securityContext }], securityContext },
      })),
  },
);
const token = fc.constantFrom(...keys, '-', '1', '~0', '~1');
const pointer = fc.oneof(
  fc.array(token, { maxLength: 5 }).map((tokens) => ['', 'spec', ...tokens].join('/')),
  fc.constantFrom(
    '/spec',
    '/metadata',
    '/spec/containers/0',
    '/spec/containers/-',
    '/spec/containers/0/securityContext',
  ),
  fc.string({ maxLength: 8 }),
);
const operation = fc.record({
  op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'constructor'),
  path: pointer,
  from: pointer,
  value: json,
});
const config = fc.record(
  {
    defaultContainerName: mostly(fc.constant('app')),
    command: json,
    args: json,
    env: json,
    resources: mostly(resources),
    podAnnotations: mostly(strings),
    podLabels: mostly(strings),
    nodeSelector: mostly(strings),
    purgeAnnotations: scalar,
    keepLivenessProbe: scalar,
    patchSpecOperations: mostly(fc.array(operation, { maxLength: 3 })),
  },
  { requiredKeys: [], noNullPrototype: true },
);

describe('builders against hostile input', () => {
  it('plan or deny, and change neither their input nor any prototype', () => {
    const before = prototypes();
    const counts = { planned: 0, refused: 0 };
    fc.assert(
      fc.property(podTemplate, config, mostly(fc.constantFrom('2', '100m')), (template, mutation, cap) => {
        const fields = typeof cap === 'string' ? { maxCpu: cap } : {};
        const planned = planPodAccess(deepFreeze(planInput(template, mutation, fields)));
        if ('violation' in planned) {
          counts.refused += 1;
          assert.match(planned.violation.code, /^[A-Z][A-Za-z]+$/);
          assert.ok(planned.violation.message.length > 10);
          return;
        }
        counts.planned += 1;
        const text = JSON.stringify(planned.plan.pod);
        assert.ok(!text.includes('"__proto__"'));
        assert.equal(planned.plan.pod?.metadata.name, 'req-1a2b3c4d-access');
        assert.equal(planned.plan.pod?.metadata.labels?.['access.drawbridge.dev/request'], '1a2b3c4d');
        assert.match(text, /"activeDeadlineSeconds":60/);
      }),
      { seed: 2026, numRuns: runs(5000, 500) },
    );
    assert.deepEqual(prototypes(), before);
    assert.ok(counts.planned > 100 && counts.refused > 100, JSON.stringify(counts));
  }).timeout(60_000);
});

const prototypes = (): PropertyKey[][] =>
  [Object.prototype, Array.prototype, Function.prototype, String.prototype].map((prototype) =>
    Reflect.ownKeys(prototype),
  );
