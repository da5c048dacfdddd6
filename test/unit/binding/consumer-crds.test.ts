import assert from 'node:assert/strict';
import { consumerKinds } from '../../../src/api/binding/kinds.ts';
import { crdRevisionAnnotation } from '../../../src/api/binding/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import type { Kind } from '../../../src/api/schema/kind.ts';
import { consumerCrd, installConsumerCrds, planConsumerCrd } from '../../../src/binding/consumer-crds.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { noLog } from '../../../src/observe/log.ts';
import { MemoryCluster } from '../../support/binding/memory-cluster.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const [bindings] = consumerKinds as readonly [Kind];
const wanted = consumerCrd(bindings);

interface Version {
  readonly name: string;
  readonly served?: boolean;
  readonly storage?: boolean;
  readonly subresources?: object;
  readonly schema?: string;
}

const served = (name: string, fields: Partial<Version> = {}): Version => ({
  name,
  served: true,
  storage: false,
  subresources: { status: {} },
  schema: `their ${name}`,
  ...fields,
});
const stored = (name: string): Version => served(name, { storage: true });

const crd = (
  versions: readonly Version[],
  fields: { readonly revision?: string; readonly going?: boolean } = {},
): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: wanted.metadata.name,
    uid: 'u',
    resourceVersion: '7',
    annotations: {
      theirs: 'x',
      ...(fields.revision === undefined ? {} : { [crdRevisionAnnotation]: fields.revision }),
    },
    ...(fields.going ? { deletionTimestamp: '2026-11-21T09:00:00Z' } : {}),
  },
  spec: { group: 'kube-bind.io', conversion: { strategy: 'None' }, versions },
  status: { conditions: [{ type: 'Established', status: 'True' }] },
});

interface Patch {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string; readonly annotations: object };
  readonly spec: { readonly names: object; readonly versions: (Omit<Version, 'schema'> & { schema: unknown })[] };
}

function patchOf(found: KubeObject): Patch {
  const step = planConsumerCrd(found, wanted);
  assert.equal(step.do, 'patch');
  return (step as { patch: Patch }).patch;
}

describe('a CRD of kube-bind in the consumer', () => {
  it('is created with our revision if it does not exist', () => {
    assert.deepEqual(planConsumerCrd(undefined, wanted), { do: 'create', object: wanted });
    assert.deepEqual(wanted.metadata.annotations, { [crdRevisionAnnotation]: '1' });
  });

  for (const [title, found] of [
    ['of kube-bind', crd([served('v1alpha1'), stored('v1alpha2')])],
    ['of another owner without the old version', crd([stored('v1alpha2')])],
    ['of a later release of kube-bind', crd([served('v1alpha2'), stored('v1beta1')])],
    ['of drawbridge', crd([stored('v1alpha2')], { revision: '1' })],
    ['of a later release of drawbridge', crd([stored('v1alpha2')], { revision: '12' })],
    ['with a revision that is no number', crd([stored('v1alpha2')], { revision: '-1' })],
  ] as const) {
    it(`is not changed if it serves the required version: a CRD ${title}`, () => {
      assert.deepEqual(planConsumerCrd(found, wanted), { do: 'nothing', established: true });
    });
  }

  it('is awaited while the API server has not established it', () => {
    const found = { ...crd([stored('v1alpha2')]), status: { conditions: [{ type: 'Established', status: 'False' }] } };
    assert.deepEqual(planConsumerCrd(found, wanted), { do: 'nothing', established: false });
  });

  it('is awaited while it is being deleted', () => {
    assert.deepEqual(planConsumerCrd(crd([], { going: true }), wanted), { do: 'nothing', established: false });
  });

  for (const [title, versions] of [
    ['lacks our version', [stored('v1alpha1')]],
    ['does not serve our version', [stored('v1alpha1'), served('v1alpha2', { served: false })]],
    ['serves our version without subresources', [served('v1alpha1'), { ...stored('v1alpha2'), subresources: {} }]],
  ] as const) {
    it(`gets our version and keeps the others if it ${title}`, () => {
      const { metadata, spec } = patchOf(crd(versions));
      assert.deepEqual(metadata, { uid: 'u', resourceVersion: '7', annotations: { [crdRevisionAnnotation]: '1' } });
      assert.deepEqual(
        spec.versions.map(({ name, served: isServed, storage }) => [name, isServed, storage]),
        [
          ['v1alpha1', true, false],
          ['v1alpha2', true, true],
        ],
      );
      assert.equal(spec.versions[0]?.schema, 'their v1alpha1');
      assert.equal(typeof spec.versions[1]?.schema, 'object');
    });
  }

  it('gets all our versions if it is an older revision of drawbridge, and keeps unknown ones', () => {
    const found = crd([served('v1alpha1'), stored('v1alpha2'), served('v1beta1')], { revision: '0' });
    const { spec } = patchOf(found);
    assert.deepEqual(
      spec.versions.map(({ name, storage, schema }) => [name, storage, typeof schema]),
      [
        ['v1alpha1', false, 'object'],
        ['v1alpha2', true, 'object'],
        ['v1beta1', false, 'string'],
      ],
    );
  });

  it('is planned for any CRD', () => {
    for (const spec of [undefined, null, 7, [], { versions: 'x' }, { versions: [null, 3, {}] }]) {
      assert.equal(planConsumerCrd({ ...crd([]), spec }, wanted).do, 'patch');
    }
  });
});

describe('installing the CRDs of the consumer', () => {
  const names = consumerKinds.map((kind) => consumerCrd(kind).metadata.name);

  function stage() {
    const clock = new SimulatedClock();
    const cluster = new MemoryCluster(clock);
    const stop = new AbortController();
    const state = { settled: 'no' };
    const done = installConsumerCrds({ cluster, client: cluster.client, clock, log: noLog }, stop.signal).then(
      () => {
        state.settled = 'installed';
      },
      () => {
        state.settled = 'rejected';
      },
    );
    const establish = (): void => {
      for (const name of names) {
        const found = cluster.find(customResourceDefinitions, { name });
        assert.ok(found, name);
        cluster.put(customResourceDefinitions, { ...found, status: crd([]).status });
      }
    };
    return { clock, cluster, stop, state, done, establish };
  }

  it('creates both, resolves once both are established, and leaves no watch open', async () => {
    const { clock, cluster, state, done, establish } = stage();
    await clock.advance(1000);
    assert.deepEqual(
      cluster.writes,
      names.map((name) => `create customresourcedefinitions ${name}`),
    );
    assert.equal(state.settled, 'no');
    establish();
    await done;
    assert.equal(state.settled, 'installed');
    assert.equal(cluster.watches, 0);
  });

  it('resolves once both are served, although none is established yet', async () => {
    const { clock, cluster, state, done } = stage();
    const served = new Set<string>();
    Object.assign(cluster.client, {
      raw: (path: string) => (served.has(path) ? Promise.resolve({}) : Promise.reject(new Error(`404 ${path}`))),
    });
    await clock.advance(5_000);
    assert.equal(state.settled, 'no');
    for (const plural of ['apiservicebindings', 'apiservicebindingbundles'])
      served.add(`/apis/kube-bind.io/v1alpha2/${plural}?limit=1`);
    await clock.advance(1_000);
    await done;
    assert.equal(state.settled, 'installed');
  });

  it('asks each second whether a kind is served, but rarely while its names are taken, and not during a deletion', async () => {
    const { clock, cluster, stop, done, state } = stage();
    let asked = 0;
    Object.assign(cluster.client, {
      raw: (path: string) => {
        if (path.includes('bundles')) return Promise.resolve({});
        asked++;
        return Promise.reject(new ApiError(404, 'NotFound', 'not served'));
      },
    });
    const [name = ''] = names;
    await clock.advance(10_500);
    assert.equal(asked, 11);
    const found = cluster.find(customResourceDefinitions, { name });
    assert.ok(found);
    const status = { conditions: [{ type: 'NamesAccepted', status: 'False' }] };
    cluster.put(customResourceDefinitions, { ...found, status });
    await clock.advance(600_000);
    assert.ok(asked >= 20 && asked <= 23, `${asked} questions`);
    const before = asked;
    const finalizers = ['customresourcecleanup.apiextensions.k8s.io'];
    const metadata = { ...found.metadata, deletionTimestamp: '2026-11-21T09:00:00Z', finalizers };
    cluster.put(customResourceDefinitions, { ...found, metadata });
    await clock.advance(600_000);
    assert.equal(asked, before);
    stop.abort();
    await done;
    assert.deepEqual([clock.pendingTimers, state.settled], [0, 'rejected']);
  });

  it('accepts that another replica creates them first', async () => {
    const { clock, cluster, state, establish, done } = stage();
    cluster.fault = ({ verb, body }) => {
      if (verb === 'create') cluster.put(customResourceDefinitions, body as KubeObject);
    };
    await clock.advance(60_000);
    assert.equal(cluster.writes.length, names.length);
    establish();
    await done;
    assert.equal(state.settled, 'installed');
  });

  it('retries while permission is missing', async () => {
    const { clock, cluster, state, establish, done } = stage();
    let refusals = 3;
    cluster.fault = ({ verb }) => {
      if (verb === 'create' && refusals-- > 0) throw new ApiError(403, 'Forbidden', 'no');
    };
    await clock.advance(60_000);
    assert.ok(cluster.writes.length >= 5, String(cluster.writes));
    establish();
    await done;
    assert.equal(state.settled, 'installed');
  });
});
