import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { until } from '../../../sandbox/wait.ts';
import { type KubeObject, keyOf, type Resource } from '../../../src/api/object.ts';
import { namespaces, pods, serviceAccounts } from '../../../src/api/resources.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { isAlreadyExists, isConflict, isNotFound, isReplaced } from '../../../src/kube/errors.ts';
import { eventRecorder } from '../../../src/kube/event-recorder.ts';
import { inlineCredentials } from '../../../src/kube/inline-kubeconfig.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import type { Projected } from '../../../src/kube/store.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const view = ({ metadata }: KubeObject): Projected => ({
  key: keyOf(metadata),
  uid: metadata.uid ?? '',
  resourceVersion: metadata.resourceVersion ?? '',
});

const eventually = (condition: () => boolean | Promise<boolean>, what: string): Promise<unknown> =>
  until(what, async () => condition(), { timeoutMs: 30_000, everyMs: 50 });

describe('kube against a real apiserver', () => {
  let cluster: OpenCluster;
  let namespace: string;

  before(async function () {
    this.timeout(240_000);
    const plane = await sharedPlane();
    cluster = openCluster(await fileCredentials(plane.adminKubeconfig), { clock: systemClock });
    namespace = await testNamespace('kube');
  });
  after(() => cluster?.close());

  const configMap = (
    name: string,
    data: Record<string, string> = {},
    labels: Record<string, string> = {},
  ): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace, name, labels },
    data,
  });

  it('creates, reads, replaces, patches, applies, and deletes', async () => {
    const { client } = cluster;
    const name = { namespace, name: 'a' };
    const created = await client.create(configMaps, configMap('a', { x: '1' }), { fieldManager: 'test' });
    await assert.rejects(client.create(configMaps, configMap('a')), isAlreadyExists);
    await client.create(configMaps, configMap('dry'), { dryRun: true });
    await assert.rejects(client.get(configMaps, { namespace, name: 'dry' }), isNotFound);

    const patched = await client.mergePatch(configMaps, name, { data: { y: '2' } });
    assert.deepEqual(patched['data'], { x: '1', y: '2' });
    await assert.rejects(client.replace(configMaps, { ...created, data: {} }), isConflict);
    await client.replace(configMaps, { ...patched, data: { z: '3' } });
    await client.jsonPatch(configMaps, name, [
      { op: 'test', path: '/data/z', value: '3' },
      { op: 'add', path: '/data/w', value: '4' },
    ]);
    await client.apply(configMaps, configMap('a', { v: '5' }), { fieldManager: 'applier', force: true });
    assert.deepEqual((await client.get(configMaps, name))['data'], { v: '5', w: '4', z: '3' });

    const uid = 'another';
    await assert.rejects(client.mergePatch(configMaps, name, { metadata: { uid }, data: { x: '6' } }), isReplaced);
    const old = { uid, resourceVersion: created.metadata.resourceVersion };
    await assert.rejects(client.mergePatch(configMaps, name, { metadata: old, data: { x: '6' } }), isConflict);
    await assert.rejects(client.delete(configMaps, name, { uid }), isConflict);
    assert.equal(
      await client.delete(configMaps, name, { uid: created.metadata.uid ?? '', propagation: 'Background' }),
      'deleted',
    );
    assert.equal(await client.delete(configMaps, name), 'absent');
  });

  it('lists in pages', async () => {
    const { client } = cluster;
    for (let i = 0; i < 7; i++) await client.create(configMaps, configMap(`page-${i}`, {}, { set: 'pages' }));
    const { items } = await client.list(configMaps, { namespace, labelSelector: 'set=pages', limit: 2 });
    assert.deepEqual(
      items.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
      Array.from({ length: 7 }, (_, i) => `ConfigMap page-${i}`),
    );
  });

  it('requests tokens and reviews that identify it', async () => {
    const { client } = cluster;
    await client.create(serviceAccounts, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace, name: 'robot' },
    });
    const { token, expiresAt } = await client.createToken({ namespace, name: 'robot' }, { expirationSeconds: 600 });
    assert.ok(Date.parse(expiresAt) > Date.now());
    const plane = await sharedPlane();
    const ca = (await readFile(plane.caFile)).toString('base64');
    const robot = openCluster(
      await inlineCredentials(
        JSON.stringify({
          clusters: [{ name: 'c', cluster: { server: plane.server, 'certificate-authority-data': ca } }],
          users: [{ name: 'u', user: { token } }],
          contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace } }],
          'current-context': 'x',
        }),
      ),
      { clock: systemClock },
    );
    await assert.rejects(robot.client.list(pods, { namespace }), { code: 403, reason: 'Forbidden' });
    await robot.close();
    const user = `system:serviceaccount:${namespace}:robot`;
    assert.equal(await client.isAllowed({ user, verb: 'list', group: '', resource: 'pods', namespace }), false);
    const masters = { user: 'x', groups: ['system:masters'], verb: 'list', group: '', resource: 'pods' };
    assert.equal(await client.isAllowed(masters), true);
  });

  it('identifies a cluster by its kube-system namespace', async () => {
    const { client } = cluster;
    const { uid } = (await client.get(namespaces, { name: 'kube-system' })).metadata;
    assert.equal(await cluster.identity(), uid);
  });

  it('follows a collection by label selector', async () => {
    const { client } = cluster;
    await client.create(configMaps, configMap('w1', {}, { set: 'watched' }));
    const { store, release } = cluster.watch({
      resource: configMaps,
      namespace,
      labelSelector: 'set=watched',
      project: view,
    });
    const observed: string[] = [];
    store.subscribe(({ type, key }) => observed.push(`${type} ${key.split('/')[1]}`));
    await store.whenSynced();
    await client.create(configMaps, configMap('w2', {}, { set: 'watched' }));
    await client.create(configMaps, configMap('w3', {}, { set: 'other' }));
    await client.mergePatch(configMaps, { namespace, name: 'w2' }, { data: { x: '1' } });
    await client.mergePatch(configMaps, { namespace, name: 'w1' }, { metadata: { labels: { set: 'other' } } });
    await client.mergePatch(configMaps, { namespace, name: 'w1' }, { metadata: { labels: { set: 'watched' } } });
    await client.delete(configMaps, { namespace, name: 'w2' });
    await eventually(() => observed.length >= 6, 'six events');
    assert.deepEqual(observed, ['added w1', 'added w2', 'updated w2', 'deleted w1', 'added w1', 'deleted w2']);
    assert.ok(store.ageMs < 5_000);
    release();
  });

  it('lists an optional kind once its CRD exists, and empties its store when the CRD is deleted', async () => {
    const { client } = cluster;
    const widgets: Resource = {
      group: 'kube.test',
      version: 'v1',
      plural: 'widgets',
      kind: 'Widget',
      namespaced: true,
    };
    const { store, release } = cluster.watch({ resource: widgets, project: view, optional: true });
    await store.whenSynced();
    const definition = {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      plural: 'customresourcedefinitions',
      kind: 'CustomResourceDefinition',
      namespaced: false,
    };
    await client.create(definition, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.kube.test' },
      spec: {
        group: 'kube.test',
        scope: 'Namespaced',
        names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: { status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
              },
            },
            subresources: { status: {} },
          },
        ],
      },
    });
    const widget = { apiVersion: 'kube.test/v1', kind: 'Widget', metadata: { namespace, name: 'w' } };
    await eventually(
      () =>
        client.create(widgets, widget).then(
          () => true,
          () => false,
        ),
      'a widget can be created',
    );
    await eventually(() => store.get(`${namespace}/w`) !== undefined, 'the store holds the widget');
    const ofAnother = { metadata: { uid: 'another', annotations: { x: '1' } } };
    await assert.rejects(client.mergePatch(widgets, { namespace, name: 'w' }, ofAnother), isReplaced);
    // For the status of a custom resource, the API server ignores the uid.
    const status = { metadata: { uid: 'another' }, status: { x: 1 } };
    const written = await client.mergePatch(widgets, { namespace, name: 'w' }, status, { subresource: 'status' });
    assert.deepEqual(written.status, { x: 1 });
    await client.delete(definition, { name: 'widgets.kube.test' });
    await eventually(() => [...store.list()].length === 0 && store.synced, 'the store is empty');
    release();
  });

  it('writes Events and their series', async () => {
    const { client } = cluster;
    const recorder = eventRecorder({ client, clock: systemClock, controller: 'drawbridge/test', instance: 'test' });
    const about = { apiVersion: 'v1', kind: 'Namespace', name: namespace };
    const regarding = { apiVersion: 'v1', kind: 'Pod', namespace, name: 'somebody' };
    recorder.record({ regarding: about, type: 'Warning', reason: 'Odd', action: 'Look', note: 'cluster-scoped' });
    for (let i = 0; i < 3; i++)
      recorder.record({ regarding, type: 'Normal', reason: 'Seen', action: 'Look', note: 'x' });
    const events = async () => {
      const { stdout } = await (await sharedPlane()).kubectl(['get', 'events.events.k8s.io', '-A', '-o', 'json']);
      const { items } = JSON.parse(stdout) as { items: { reason: string; series?: { count: number } }[] };
      return items
        .filter(({ reason }) => reason === 'Odd' || reason === 'Seen')
        .map(({ reason, series }) => [reason, series?.count]);
    };
    await eventually(async () => (await events()).length === 2, 'two Events');
    recorder.record({ regarding, type: 'Normal', reason: 'Seen', action: 'Look', note: 'x' });
    await recorder.close();
    assert.deepEqual((await events()).sort(), [
      ['Odd', undefined],
      ['Seen', 4],
    ]);
  });
});
