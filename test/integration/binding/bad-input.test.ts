import assert from 'node:assert/strict';
import { ClusterNamespace } from '../../../sandbox/binding/cluster-namespace.ts';
import { type FixtureKind, fixtureKinds } from '../../../sandbox/binding/fixture-kinds.ts';
import { Provider } from '../../../sandbox/binding/provider.ts';
import { until } from '../../../sandbox/wait.ts';
import { KeySecret } from '../../../src/access/signing/key-secret.ts';
import {
  apiServiceBindings,
  boundSchemas,
  keepKubeconfigAnnotation,
  kubeconfigKey,
} from '../../../src/api/binding/names.ts';
import { apiVersionOf, type KubeObject, keyOf, type Resource } from '../../../src/api/object.ts';
import { configMaps, customResourceDefinitions, secrets, serviceAccounts } from '../../../src/api/resources.ts';
import { headNames } from '../../../src/audit/head.ts';
import { accountFor, kubeconfigSecretFor } from '../../../src/inventory/accounts/entry-objects.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { noLog } from '../../../src/observe/log.ts';
import { getIfThere } from '../../support/binding/consumer.ts';
import { konnectorNamespace } from '../../support/binding/konnector-rights.ts';
import { bindingPlane } from '../../support/binding/planes.ts';
import { BindingStage } from '../../support/binding/stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';

const keySecretName = headNames.access.keys;

describe('bad input', () => {
  let stage: BindingStage;
  let secret: string;
  /** Objects that must not exist in the consumer. */
  let others: FixtureKind[];
  /** The namespace of the konnector's release. */
  let home: string;
  let count = 0;

  /** The valid binding must keep syncing while others fail, and the konnector must delete nothing. */
  async function goesOn(): Promise<void> {
    const oven = { name: `oven-${++count}` };
    await stage.create(stage.kinds.ovens, oven);
    await stage.whenSynced(stage.kinds.ovens, oven);
    await stage.side.consumer.whenCondition('good', 'Ready');
    for (const kind of [stage.kinds.ovens, stage.kinds.kettles]) {
      assert.deepEqual(
        stage.writes(kind).filter(({ verb }) => verb === 'delete'),
        [],
      );
    }
  }

  /** Checks that the condition has a specific message and that the binding is not Ready for that reason. */
  async function assertCondition(binding: string, type: string, reason: string, message: RegExp): Promise<void> {
    const { consumer } = stage.side;
    await consumer.whenCondition(binding, type, 'False', { reason, message });
    await consumer.whenCondition(binding, 'Ready', 'False', { reason, message });
  }

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ informerScope: 'Cluster', claims: ['secrets', 'configmaps', 'serviceaccounts'] });
    const kinds = fixtureKinds(`elsewhere-${stage.id}.example`, 'Prefixed');
    others = [kinds.kettles, kinds.ovens];
    await stage.provider.install(...others.map(({ crd }) => crd));
    home = await stage.side.consumer.namespace(`home-${stage.id}`);
    stage.alsoRemove(home);
    await stage.side.consumer.start(`--lease-namespace=${home}`);
    secret = await stage.bind('good', [stage.kinds.ovens]);
  });
  after(async () => {
    const names = others.map(({ crd }) => crd.metadata.name);
    for (const name of names) await stage.side.consumer.client.delete(customResourceDefinitions, { name });
    await stage.provider.remove(customResourceDefinitions, ...names);
    await stage.close();
  });
  afterEach(goesOn);

  describe('in the Secret with the kubeconfig', () => {
    it('the Secret is missing, until it is created', async () => {
      await stage.side.consumer.bind('missing', 'missing');
      await assertCondition(
        'missing',
        'SecretValid',
        'KubeconfigSecretNotFound',
        /kube-bind\/missing not found; create it/,
      );
      await stage.side.consumer.connect(stage.side.backend.identity.kubeconfig, { name: 'missing' });
      await stage.side.consumer.whenCondition('missing', 'SecretValid');
      await assertCondition('missing', 'Connected', 'APIServiceExportNotFound', /has no APIServiceExport missing/);
    });

    it("the kubeconfig names another cluster's namespace of the same name", async () => {
      const { backend, consumer } = stage.side;
      const impostor = await Provider.open(await bindingPlane('second-consumer'));
      const namespace = await ClusterNamespace.open(impostor, backend.clusterNamespace);
      const annotations = { [keepKubeconfigAnnotation]: 'true' };
      await consumer.connect(namespace.kubeconfig, { name: secret, annotations });
      await assertCondition(
        'good',
        'SecretValid',
        'KubeconfigSecretInvalid',
        /it belongs to another provider; restore the previous/,
      );
      const oven = { name: 'meanwhile' };
      await stage.create(stage.kinds.ovens, oven);
      await stage.whenSynced(stage.kinds.ovens, oven);
      await consumer.connect(backend.identity.kubeconfig, { name: secret, annotations });
      await consumer.whenCondition('good', 'Ready');
      await impostor.close();
    });
  });

  describe('from the provider', () => {
    it('a BoundSchema is not structural', async () => {
      const [kind] = others;
      assert.ok(kind);
      // The export begins with this schema, because the server may still know the previous one after a change.
      const schema = { openAPIV3Schema: { properties: { spec: { items: {} } } } };
      const spec = { ...(kind.crd.spec as object), versions: [{ name: 'v1', served: true, storage: true, schema }] };
      await stage.side.backend.export({ name: 'formless', kinds: [{ ...kind, crd: { ...kind.crd, spec } }] });
      await stage.side.consumer.bind('formless', secret);
      const reason = 'CustomResourceDefinitionCreateFailed';
      await assertCondition(
        'formless',
        'Connected',
        reason,
        /rejects CustomResourceDefinition .*; ask the provider to correct its BoundSchema/,
      );
    });

    it('a BoundSchema is missing', async () => {
      const [, kind] = others;
      assert.ok(kind);
      const { backend, consumer } = stage.side;
      await backend.export({ name: 'schemaless', kinds: [kind] });
      const where = { namespace: backend.clusterNamespace, name: kind.crd.metadata.name };
      const schema = await stage.provider.client.get(boundSchemas, where);
      await stage.provider.client.delete(boundSchemas, where);
      // Another client creates a CRD of that name. It does so before the binding, because the server may still know the deleted schema then.
      await consumer.client.create(customResourceDefinitions, kind.crd);
      await consumer.bind('schemaless', secret);
      await assertCondition('schemaless', 'Connected', 'BoundSchemaFetchFailed', /has no BoundSchema of that name/);
      const { metadata, ...rest } = schema;
      const { name, namespace, annotations = {} } = metadata;
      const before = await consumer.get(customResourceDefinitions, { name });
      await stage.provider.client.create(boundSchemas, {
        ...rest,
        metadata: { name, ...(namespace ? { namespace } : {}), annotations },
      });
      const reason = 'ForeignCustomResourceDefinition';
      await assertCondition(
        'schemaless',
        'Connected',
        reason,
        /exists and is not owned by APIServiceBinding schemaless; the server does not change it/,
      );
      const after = await consumer.get(customResourceDefinitions, { name });
      assert.equal(after?.metadata.generation, before?.metadata.generation);
      assert.equal(after?.metadata.uid, before?.metadata.uid);
      await consumer.client.delete(apiServiceBindings, { name: 'schemaless' });
      const gone = async () => (await consumer.get(apiServiceBindings, { name: 'schemaless' })) === undefined;
      await until('the binding to be gone', gone, { timeoutMs: 30_000 });
      assert.ok(await consumer.get(customResourceDefinitions, { name }));
    });

    it('a claim is on a kind that is not allowed; the rest is bound', async () => {
      const { kettles } = stage.kinds;
      const { backend, consumer, namespace } = stage.side;
      const selector = { labelSelector: {} };
      const claimed = ['configmaps', 'secrets', 'serviceaccounts'].map((resource) => ({
        group: '',
        resource,
        selector,
      }));
      const claims = [{ group: 'apps', resource: 'deployments', selector }, ...claimed];
      await backend.export({ name: 'greedy', kinds: [kettles], claims });
      await consumer.bind('greedy', secret);
      await assertCondition(
        'greedy',
        'Connected',
        'InvalidPermissionClaim',
        /claims deployments.apps, which is not shared; a provider may claim/,
      );
      await stage.create(kettles, { namespace, name: 'tea' });
      await stage.whenSynced(kettles, { namespace, name: 'tea' });
      const reader = { plane: consumer.plane, folder: consumer.plane.directory };
      const follow = (path: string, words: string): Promise<string> =>
        runAsReader(reader, scriptOf(path, words).replace('widgets', 'greedy'));
      assert.match(await follow('docs/binding/annotations.md', 'resync'), /greedy annotated$/m);
      assert.match(await follow('docs/binding/claims.md', 'claimable'), /greedy annotated$/m);
      const accepted = "kubectl get sb greedy -o jsonpath='{.status.permissionClaims[*].resource}'";
      const isLimited = async (): Promise<boolean> => (await runAsReader(reader, accepted)) === 'configmaps';
      await until('the binding to accept only claims on ConfigMaps', isLimited, { timeoutMs: 30_000 });
      await runAsReader(reader, 'kubectl annotate sb greedy binding.drawbridge.dev/claimable-');
    });

    it('claims are on everything: the consumer keeps its own objects, and no object of the provider replaces them', async () => {
      const { kettles } = stage.kinds;
      const { backend, consumer, namespace } = stage.side;
      const there = stage.provider.client;
      const elsewhere = await consumer.namespace(`keys-${stage.id}`);
      stage.alsoRemove(elsewhere);
      const since = consumer.plane.auditLog.mark();
      const entry = { namespace, name: 'cluster', uid: '0b0e3c1e-8b7e-4c7c-9a63-4c1f7a1f0001' };
      await new KeySecret({
        client: consumer.client,
        namespace: elsewhere,
        name: keySecretName,
        purpose: 'test',
        adopt: false,
        rereadMs: 60_000,
        clock: systemClock,
        log: noLog,
      }).refresh();
      const kubeconfig = alone(kubeconfigSecretFor(entry));
      const account = alone(accountFor(entry, 'network'));
      await consumer.client.create(secrets, kubeconfig);
      await consumer.client.create(serviceAccounts, account);
      await consumer.client.create(secrets, objectOf(secrets, home, 'tls'));
      await consumer.client.create(configMaps, objectOf(configMaps, home, 'settings'));
      await consumer.client.create(secrets, objectOf(secrets, konnectorNamespace, 'not-yet-bound'));
      // Objects of the bound kind exist in all of these namespaces, so the provider has namespaces for them.
      for (const one of [home, elsewhere, konnectorNamespace]) {
        await stage.create(kettles, { namespace: one, name: 'tea' });
        await stage.whenSynced(kettles, { namespace: one, name: 'tea' });
      }
      const planted: [string, string, Record<string, string>][] = [
        [home, keySecretName, {}],
        [konnectorNamespace, 'planted', {}],
        [elsewhere, 'planted', { 'app.kubernetes.io/name': 'drawbridge' }],
        [namespace, 'planted', kubeconfig.metadata.labels ?? {}],
      ];
      for (const [one, name, labels] of planted) {
        await there.create(secrets, objectOf(secrets, backend.serviceNamespaceOf(one), name, labels));
      }
      for (const resource of [secrets, configMaps, serviceAccounts]) {
        for (const one of [namespace, elsewhere]) {
          await consumer.client.create(resource, objectOf(resource, one, 'ordinary'));
          const copy = { namespace: backend.serviceNamespaceOf(one), name: 'ordinary' };
          await until(`the copy of ${one}/ordinary`, () => getIfThere(there, resource, copy), { timeoutMs: 30_000 });
        }
      }
      await there.create(secrets, objectOf(secrets, backend.serviceNamespaceOf(namespace), 'theirs'));
      const theirs = { namespace, name: 'theirs' };
      await until('what the provider shares', () => consumer.get(secrets, theirs), { timeoutMs: 30_000 });

      for (const [resource, one, names] of [
        [secrets, home, [keySecretName]],
        [configMaps, home, []],
        [serviceAccounts, home, []],
        [secrets, konnectorNamespace, ['planted']],
        [secrets, elsewhere, ['ordinary', 'planted']],
        [secrets, namespace, ['ordinary', 'planted', 'theirs']],
        [serviceAccounts, namespace, ['ordinary']],
      ] as const) {
        const { items } = await there.list(resource, { namespace: backend.serviceNamespaceOf(one) });
        const found = items.map(({ metadata }) => metadata.name);
        assert.deepEqual(
          found.filter((name) => !everywhere.includes(name)).sort(),
          names,
          `${resource.kind} of ${one}`,
        );
      }
      const written = consumer.plane.auditLog
        .calls({ user: consumer.konnectorUser, since, resources: ['secrets', 'configmaps', 'serviceaccounts'] })
        .filter(({ verb }) => ['create', 'update', 'patch', 'delete'].includes(verb))
        .map((call) => `${call.namespace}/${call.name}`);
      const ours = [
        `${elsewhere}/${keySecretName}`,
        keyOf(kubeconfig.metadata),
        keyOf(account.metadata),
        ...planted.map(([one, name]) => `${one}/${name}`),
      ];
      const homes = [`${home}/`, `${konnectorNamespace}/`];
      assert.deepEqual(
        written.filter((key) => ours.includes(key) || homes.some((prefix) => key.startsWith(prefix))),
        [],
      );
    });

    it('claims are on everything: a kubeconfig Secret that the server restored stays here, even after its binding is deleted', async () => {
      const { kettles } = stage.kinds;
      const { backend, consumer } = stage.side;
      const { client } = consumer;
      const namespace = await consumer.namespace(`restored-${stage.id}`);
      stage.alsoRemove(namespace);
      await stage.create(kettles, { namespace, name: 'tea' });
      await stage.whenSynced(kettles, { namespace, name: 'tea' });
      const name = { namespace, name: 'kubeconfig' };
      const binding: KubeObject = {
        apiVersion: apiVersionOf(apiServiceBindings),
        kind: apiServiceBindings.kind,
        metadata: { name: 'restored' },
        spec: { kubeconfigSecretRef: { ...name, key: kubeconfigKey } },
      };
      await client.create(apiServiceBindings, binding);
      // Until the Secret exists, the condition shows that the server knows the binding, which keeps the Secret from the claims.
      await consumer.whenCondition('restored', 'SecretValid', 'False', { reason: 'KubeconfigSecretNotFound' });
      const { metadata: original } = await client.create(secrets, {
        ...objectOf(secrets, namespace, name.name),
        data: { [kubeconfigKey]: Buffer.from(backend.identity.kubeconfig).toString('base64') },
      });
      await consumer.whenCondition('restored', 'SecretValid');
      await client.delete(secrets, name);
      const isRestored = async () =>
        ![undefined, original.uid].includes((await consumer.get(secrets, name))?.metadata.uid);
      await until('the Secret to be restored', isRestored, { timeoutMs: 60_000 });
      await client.delete(apiServiceBindings, binding.metadata);
      const isUnbound = async () => (await consumer.get(apiServiceBindings, binding.metadata)) === undefined;
      await until('the binding to be gone', isUnbound, { timeoutMs: 30_000 });

      // A change enqueues the Secret. The copies of later objects show that the server has reconciled it.
      await client.mergePatch(secrets, name, { metadata: { annotations: { 'example.com/changed': 'true' } } });
      const there = stage.provider.client;
      const serviceNamespace = backend.serviceNamespaceOf(namespace);
      for (const later of ['later-1', 'later-2']) {
        await client.create(secrets, objectOf(secrets, namespace, later));
        const copy = { namespace: serviceNamespace, name: later };
        await until(`the copy of ${later}`, () => getIfThere(there, secrets, copy), { timeoutMs: 30_000 });
      }
      const { items } = await there.list(secrets, { namespace: serviceNamespace });
      assert.deepEqual(items.map(({ metadata }) => metadata.name).sort(), ['later-1', 'later-2']);
    });
  });

  // In a describe of its own, because mocha runs the tests of a describe before those of nested ones.
  describe('in all of the above', () => {
    it('causes no call that the konnector is not allowed to make', () => {
      assert.deepEqual(stage.side.consumer.refusals(), []);
      assert.deepEqual(stage.providerRefusals(), []);
    });
  });
});

/** Objects that Kubernetes creates in each namespace. */
const everywhere: readonly string[] = ['default', 'kube-root-ca.crt'];

const objectOf = (
  resource: Resource,
  namespace: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): KubeObject => ({
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
  metadata: { namespace, name, labels: { ...labels } },
});

/** The object without owner references, because its owner does not exist. */
function alone({ metadata: { ownerReferences: _, ...metadata }, ...object }: KubeObject): KubeObject {
  return { ...object, metadata } as KubeObject;
}
