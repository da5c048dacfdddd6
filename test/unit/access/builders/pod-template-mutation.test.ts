import assert from 'node:assert/strict';
import { mutatePodTemplate, type PodTemplate } from '../../../../src/access/builders/pod-template-mutation.ts';
import type { ResourceCaps } from '../../../../src/access/builders/resource-caps.ts';
import type { ControllerTargetMutationConfig } from '../../../../src/api/access/mutation-config.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';

const probe = { httpGet: { path: '/', port: 80 } };
const probes = { livenessProbe: probe, readinessProbe: probe, startupProbe: probe };
const source = deepFreeze({
  metadata: { labels: { app: 'web' }, annotations: { old: '1' } },
  spec: {
    terminationGracePeriodSeconds: 30,
    topologySpreadConstraints: [{ maxSkew: 1 }],
    nodeSelector: { zone: 'a' },
    containers: [
      { name: 'app', image: 'a:1', command: ['run'], args: ['-v'], env: [{ name: 'A', value: '1' }], ...probes },
      { name: 'side', image: 's:1', ...probes },
    ],
  },
});

function mutate(
  config?: ControllerTargetMutationConfig,
  caps: ResourceCaps = {},
  template: unknown = source,
): PodTemplate {
  const mutated = mutatePodTemplate(template, config && deepFreeze(config), caps);
  assert.ok('template' in mutated, JSON.stringify(mutated));
  return mutated.template;
}
function refusal(config?: ControllerTargetMutationConfig, template: unknown = source, caps: ResourceCaps = {}): string {
  const mutated = mutatePodTemplate(template, config, caps);
  return 'violation' in mutated ? `${mutated.violation.code}: ${mutated.violation.message}` : 'none';
}

describe('pod template mutation', () => {
  it('removes only labels and the grace period without a config', () => {
    const { terminationGracePeriodSeconds: _, ...spec } = structuredClone(source.spec);
    assert.deepEqual(mutate(), { metadata: { annotations: { old: '1' } }, spec });
  });

  it('removes everything that the config does not keep, and probes only from the default container', () => {
    assert.deepEqual(mutate({}), {
      metadata: { annotations: { old: '1' } },
      spec: {
        nodeSelector: { zone: 'a' },
        containers: [
          { name: 'app', image: 'a:1', command: ['run'], args: ['-v'], env: [{ name: 'A', value: '1' }] },
          source.spec.containers[1],
        ],
      },
    });
  });

  it('keeps the fields that the config names', () => {
    const kept = mutate({
      keepTerminationGracePeriod: true,
      keepLivenessProbe: true,
      keepReadinessProbe: true,
      keepStartupProbe: true,
      keepTopologySpreadConstraints: true,
    });
    assert.deepEqual(kept.spec, source.spec);
  });

  it('merges annotations, node selector and labels', () => {
    const { metadata, spec } = mutate({
      podAnnotations: { new: '2' },
      podLabels: { team: 'x' },
      nodeSelector: { disk: 'ssd' },
    });
    assert.deepEqual(metadata, { annotations: { old: '1', new: '2' }, labels: { team: 'x' } });
    assert.deepEqual(spec['nodeSelector'], { zone: 'a', disk: 'ssd' });
  });

  it('removes annotations before it adds those of the config', () => {
    const config = { purgeAnnotations: true, podAnnotations: { new: '2' } };
    assert.deepEqual(mutate(config).metadata, { annotations: { new: '2' } });
  });

  it('merges into missing maps', () => {
    const bare = { spec: { containers: [{ name: 'app' }] } };
    const config = {
      podAnnotations: { a: '1' },
      podLabels: { b: '2' },
      nodeSelector: { c: '3' },
      env: [{ name: 'D' }],
    };
    assert.deepEqual(mutate(config, {}, bare), {
      metadata: { annotations: { a: '1' }, labels: { b: '2' } },
      spec: { nodeSelector: { c: '3' }, containers: [{ name: 'app', env: [{ name: 'D' }] }] },
    });
  });

  for (const [title, config, command, args] of [
    ['command empties args', { command: ['sleep'] }, ['sleep'], []],
    ['args replace args', { args: ['1'] }, ['run'], ['1']],
    ['command and args replace both', { command: ['sleep'], args: ['1'] }, ['sleep'], ['1']],
    ['an empty command falls back to the image', { command: [] }, [], []],
  ] as const) {
    it(title, () => {
      const [container] = mutate(structuredClone<unknown>(config) as ControllerTargetMutationConfig).spec.containers;
      assert.deepEqual([container?.['command'], container?.['args']], [command, args]);
    });
  }

  it('appends env and replaces resources if the config has them', () => {
    const config = { env: [{ name: 'B', value: '2' }], resources: { limits: { cpu: '1' } } };
    const [container] = mutate(config).spec.containers;
    assert.deepEqual(container?.['env'], [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ]);
    assert.deepEqual(container?.['resources'], { limits: { cpu: '1' } });
    assert.equal(mutate({ resources: {} }).spec.containers[0]?.['resources'], undefined);
  });

  it('applies the patch last', () => {
    const { metadata, spec } = mutate({
      command: ['sleep'],
      podLabels: { team: 'x' },
      patchSpecOperations: [
        { op: 'test', path: '/spec/containers/0/command', value: ['sleep'] },
        { op: 'replace', path: '/spec/containers/0/command/0', value: 'tail' },
        { op: 'add', path: '/metadata/labels/more', value: 'y' },
      ],
    });
    assert.deepEqual(spec.containers[0]?.['command'], ['tail']);
    assert.deepEqual(metadata['labels'], { team: 'x', more: 'y' });
  });

  for (const [title, config, annotations, changed] of [
    ['the configured name', { defaultContainerName: 'side' }, { 'kubectl.kubernetes.io/default-container': 'app' }, 1],
    ['the annotation of kubectl', {}, { 'kubectl.kubernetes.io/default-container': 'side' }, 1],
    ['the first container', {}, {}, 0],
    ['the purged annotation', { purgeAnnotations: true }, { 'kubectl.kubernetes.io/default-container': 'side' }, 1],
  ] as const) {
    it(`finds the default container by ${title}`, () => {
      const template = { ...source, metadata: { annotations } };
      const { containers } = mutate({ ...config, command: ['sleep'] }, {}, template).spec;
      assert.deepEqual(
        containers.map((container) => container['command']),
        changed ? [['run'], ['sleep']] : [['sleep'], undefined],
      );
    });
  }

  for (const [title, config, template, expected] of [
    [
      'a default container that is not there',
      { defaultContainerName: 'nope' },
      source,
      /defaultContainerName names the container "nope"; .*"app, side"/,
    ],
    [
      'an annotation that names no container',
      {},
      { ...source, metadata: { annotations: { 'kubectl.kubernetes.io/default-container': 'x' } } },
      /InvalidTemplate: the annotation .* "x"; .*: name one of these in spec\.controllerTargetMutationConfig\.defaultContainerName/,
    ],
    ['a template without spec', {}, { metadata: {} }, /InvalidTemplate: the pod template has no spec/],
    ['no template', undefined, null, /InvalidTemplate/],
    ['no containers', undefined, { spec: { containers: [] } }, /has no containers/],
    ['odd containers', undefined, { spec: { containers: ['x'] } }, /not an object/],
    ['a __proto__ key', undefined, JSON.parse('{"spec":{"containers":[{}],"__proto__":{}}}'), /named __proto__/],
    [
      'a patch that removes the containers',
      { patchSpecOperations: [{ op: 'remove' as const, path: '/spec/containers' }] },
      source,
      /after patchSpecOperations the pod template has no containers/,
    ],
    [
      'a patch that does not apply',
      { patchSpecOperations: [{ op: 'remove' as const, path: '/spec/x' }] },
      source,
      /InvalidTemplate: spec\.controllerTargetMutationConfig\.patchSpecOperations\[0\] \(remove "\/spec\/x"\)/,
    ],
  ] as const) {
    it(`rejects ${title}`, () =>
      assert.match(refusal(config as ControllerTargetMutationConfig | undefined, template), expected));
  }

  it('shares nothing with its inputs', () => {
    const config = {
      podLabels: { a: 'b' },
      command: ['x'],
      patchSpecOperations: [{ op: 'add' as const, path: '/spec/y', value: { z: [1] } }],
    };
    const template = mutate(config);
    for (const part of [template.metadata, template.spec, template.spec.containers[1] ?? {}]) part['changed'] = true;
    assert.equal(JSON.stringify([source, config]).includes('changed'), false);
  });
});

describe('resource caps', () => {
  const caps = { maxCpu: '2', maxMemory: '1Gi', maxStorage: 5_000_000_000 };
  const withResources = (resources: unknown): unknown => ({ spec: { containers: [{ name: 'app', resources }] } });

  for (const [title, resources, expected] of [
    [
      'lower values above them',
      {
        requests: { cpu: '3', memory: '512Mi', 'ephemeral-storage': '1G' },
        limits: { cpu: 4, memory: '2Gi', 'ephemeral-storage': '9G' },
      },
      {
        requests: { cpu: '2', memory: '512Mi', 'ephemeral-storage': '1G' },
        limits: { cpu: '2', memory: '1Gi', 'ephemeral-storage': 5_000_000_000 },
      },
    ],
    [
      'become the limit if there is none, without higher requests',
      undefined,
      {
        requests: { cpu: '0', memory: '0', 'ephemeral-storage': '0' },
        limits: { cpu: '2', memory: '1Gi', 'ephemeral-storage': 5_000_000_000 },
      },
    ],
    [
      'do not change lower values and other resources',
      { limits: { cpu: '500m', memory: '1024Mi', 'ephemeral-storage': '1', 'example.com/gpu': 9 } },
      { limits: { cpu: '500m', memory: '1024Mi', 'ephemeral-storage': '1', 'example.com/gpu': 9 } },
    ],
  ] as const) {
    it(title, () =>
      assert.deepEqual(mutate(undefined, caps, withResources(resources)).spec.containers[0]?.['resources'], expected),
    );
  }

  it('apply to every container, after the patch, with a note for each change', () => {
    const template = {
      spec: {
        initContainers: [{ name: 'init', resources: { limits: { cpu: '8' } } }],
        containers: [{ name: 'app', resources: { limits: { cpu: '1' } } }],
        resources: { requests: { cpu: '16' } },
      },
    };
    const config = {
      patchSpecOperations: [{ op: 'replace' as const, path: '/spec/containers/0/resources/limits/cpu', value: '64' }],
    };
    const mutated = mutatePodTemplate(template, config, { maxCpu: '2' });
    assert.ok('template' in mutated);
    assert.deepEqual(mutated.lowered, [
      'container init: limits.cpu lowered from 8 to 2',
      'container app: limits.cpu lowered from 64 to 2',
      'the pod: requests.cpu lowered from 16 to 2',
    ]);
    assert.deepEqual(mutated.template.spec['resources'], { requests: { cpu: '2' } });
  });

  it('reject invalid quantities', () => {
    assert.match(
      refusal(undefined, withResources({ limits: { cpu: 'lots' } }), caps),
      /resources\.limits\.cpu: "lots"/,
    );
    assert.match(refusal(undefined, source, { maxCpu: 'lots' }), /InvalidTemplate: spec\.maxCpu/);
  });
});
