import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  apiServiceBindingBundles,
  apiServiceBindings,
  apiServiceExports,
  boundSchemas,
} from '../../../../src/api/binding/names.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { bySecret, openConsumerStores } from '../../../../src/binding/stores/consumer-stores.ts';
import { bySchema, openProviderStores } from '../../../../src/binding/stores/provider-stores.ts';
import { type Log, type LogFields, noLog } from '../../../../src/observe/log.ts';
import { MemoryCluster } from '../../../support/binding/memory-cluster.ts';
import * as objects from '../../../support/binding/objects.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const now = '2026-11-21T09:30:00Z';
const ready = { type: 'Ready', status: 'True', lastTransitionTime: now } as const;

function collecting() {
  const logged: (LogFields | undefined)[] = [];
  const said: string[] = [];
  const warn = (message: string, fields?: LogFields): void => {
    said.push(message);
    logged.push(fields);
  };
  return { log: { ...noLog, warn }, logged, said };
}

const withMetadata = (object: KubeObject, metadata: object): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});

describe('the stores of the consumer', () => {
  const open = (log: Log = noLog) => {
    const cluster = new MemoryCluster(new SimulatedClock());
    return { cluster, opened: openConsumerStores(cluster, log) };
  };

  it('show the fields of a binding that decisions need', () => {
    const { cluster, opened } = open();
    const metadata = {
      labels: { a: 'b' },
      annotations: { c: 'd', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
      finalizers: ['f'],
      deletionTimestamp: now,
    };
    const status = {
      providerPrettyName: 'Acme',
      conditions: [ready],
      boundSchemas: [{ group: 'kitchen.example', resource: 'kettles' }, { resource: 'secrets' }],
      permissionClaims: [objects.secretsClaim],
    };
    cluster.put(apiServiceBindings, withMetadata(objects.bindingManifest({ status }), metadata));
    const view = opened.stores.bindings.get('kettles');
    assert.deepEqual(view, {
      key: 'kettles',
      uid: 'uid-of-kettles',
      resourceVersion: view?.resourceVersion,
      name: 'kettles',
      generation: 1,
      deleting: true,
      finalizers: ['f'],
      labels: { a: 'b' },
      annotations: { c: 'd' },
      ownerReferences: [],
      secretRef: objects.kubeconfigSecretRef,
      conditions: [ready],
      providerPrettyName: 'Acme',
      boundSchemas: [
        { group: 'kitchen.example', resource: 'kettles' },
        { group: '', resource: 'secrets' },
      ],
      permissionClaims: [objects.secretsClaim],
    });
  });

  it('keep an object whose status has unexpected values', () => {
    const { cluster, opened } = open();
    const status = { conditions: 'none', boundSchemas: [null, 7, {}], permissionClaims: {}, providerPrettyName: 3 };
    cluster.put(apiServiceBindings, objects.bindingManifest({ status }));
    const view = opened.stores.bindings.get('kettles');
    assert.deepEqual([view?.conditions, view?.boundSchemas, view?.permissionClaims], [[], [], []]);
    assert.equal(view?.providerPrettyName, undefined);
  });

  it('keep a binding that is not valid, with the reason', () => {
    const { cluster, opened } = open();
    cluster.put(apiServiceBindings, objects.bindingManifest({ spec: { kubeconfigSecretRef: { name: '' } } }));
    const { specProblem, secretRef, uid } = opened.stores.bindings.get('kettles') ?? {};
    assert.match(specProblem ?? '', /^spec\.kubeconfigSecretRef\.name may not be empty, /);
    assert.deepEqual([secretRef?.name, uid], ['', 'uid-of-kettles']);
    assert.deepEqual(opened.stores.bindings.byIndex(bySecret, '/'), []);
  });

  it('leave out an object whose spec is not valid, and log it', () => {
    const { log, logged, said } = collecting();
    const { cluster, opened } = open(log);
    cluster.put(apiServiceBindingBundles, objects.bundleManifest({ spec: { kubeconfigSecretRef: { name: '' } } }));
    assert.equal(opened.stores.bundles.get('acme'), undefined);
    const wrong = ['name may not be empty', 'key is required', 'namespace is required'];
    const problems = wrong.map((what) => `spec.kubeconfigSecretRef.${what}`);
    assert.deepEqual(logged, [{ kind: 'APIServiceBindingBundle', object: 'acme', problems }]);
    assert.match(said.join(), /; the server treats it as absent; /);
  });

  it('end all their watches together', () => {
    const { cluster, opened } = open();
    assert.equal(cluster.watches, opened.all.length);
    opened.release();
    assert.equal(cluster.watches, 0);
  });
});

describe('the stores of a provider', () => {
  const open = () => {
    const cluster = new MemoryCluster(new SimulatedClock());
    return { cluster, stores: openProviderStores(cluster, 'kb-acme').stores };
  };

  it('show an export, and find it by its schemas', () => {
    const { cluster, stores } = open();
    const resources = [
      { group: 'kitchen.example', resource: 'kettles' },
      { resource: 'secrets', versions: ['v1'] },
    ];
    const spec = { ...(objects.exportManifest().spec as object), resources };
    cluster.put(apiServiceExports, objects.exportManifest({ spec, status: { conditions: [ready] } }));
    const view = stores.exports.byIndex(bySchema, 'kettles.kitchen.example')[0];
    assert.equal(stores.exports.byIndex(bySchema, 'secrets.core')[0], view);
    assert.deepEqual(view?.resources, [
      { group: 'kitchen.example', resource: 'kettles', versions: [] },
      { group: '', resource: 'secrets', versions: ['v1'] },
    ]);
    assert.deepEqual(
      [view?.key, view?.namespace, view?.isolation, view?.informerScope, view?.conditions, view?.permissionClaims],
      ['kb-acme/kettles', 'kb-acme', 'Prefixed', 'Namespaced', [ready], [objects.secretsClaim]],
    );
  });

  for (const [title, schema] of [
    ['without a wrapper', { type: 'object' }],
    ['in its wrapper', { openAPIV3Schema: { type: 'object' } }],
  ] as const) {
    it(`show a BoundSchema with a schema ${title}`, () => {
      const { cluster, stores } = open();
      const version = { name: 'v1', served: true, storage: true, schema };
      const spec = { ...(objects.boundSchemaManifest().spec as object), versions: [version] };
      cluster.put(boundSchemas, objects.boundSchemaManifest({ spec }));
      assert.deepEqual(stores.schemas.get('kb-acme/kettles.kitchen.example')?.versions, [
        { ...version, schema: { type: 'object' }, subresources: {}, additionalPrinterColumns: [] },
      ]);
    });
  }

  it('do not show objects of other cluster namespaces', () => {
    const { cluster, stores } = open();
    cluster.put(apiServiceExports, withMetadata(objects.exportManifest(), { namespace: 'kb-other' }));
    assert.deepEqual([...stores.exports.list()], []);
  });

  it('accept any object that a provider sends', () => {
    const cluster = new MemoryCluster(new SimulatedClock());
    const projections: ((object: KubeObject) => unknown)[] = [];
    const watch: typeof cluster.watch = (spec) => {
      projections.push(spec.project);
      return cluster.watch(spec);
    };
    openProviderStores(Object.assign(Object.create(cluster), { watch }), 'kb-acme');
    const manifests = [
      objects.exportManifest,
      objects.boundSchemaManifest,
      objects.serviceNamespaceManifest,
      objects.clusterBindingManifest,
      objects.exportRequestManifest,
    ];
    const fields = ['labels', 'annotations', 'finalizers', 'ownerReferences', 'generation', 'deletionTimestamp'];
    fc.assert(
      fc.property(fc.nat(4), fc.constantFrom(...fields), fc.jsonValue(), (which, field, value) => {
        const object = manifests[which]?.({ status: value });
        assert.ok(object);
        assert.ok(projections[which]?.(withMetadata(object, { [field]: value })), object.kind);
      }),
      { seed: 4, numRuns: 500 },
    );
  });
});
