import assert from 'node:assert/strict';
import type { FixtureKind } from '../../../sandbox/binding/fixture-kinds.ts';
import { until } from '../../../sandbox/wait.ts';
import {
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  ownerLabel,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
} from '../../../src/api/binding/names.ts';
import type { PermissionClaim } from '../../../src/api/binding/permission-claim.ts';
import type { KubeObject, ObjectName } from '../../../src/api/object.ts';
import { customResourceDefinitions, secrets } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import { getIfThere } from '../../support/binding/consumer.ts';
import { kitchenClaim, kitchenSecret } from '../../support/binding/kitchen-secrets.ts';
import { BindingStage, type Side, type StageOptions } from '../../support/binding/stage.ts';

interface Scenario extends StageOptions {
  readonly title: string;
  readonly exported: 'kettles' | 'ovens';
}

/** `shared-names.test.ts` has the cluster scope without isolation; most other files have the namespaced scope with prefixes. */
const scenarios: readonly Scenario[] = [
  { title: 'cluster-scoped, prefixed', exported: 'ovens', informerScope: 'Cluster', isolation: 'Prefixed' },
  { title: 'cluster-scoped, in a namespace', exported: 'ovens', informerScope: 'Cluster', isolation: 'Namespaced' },
  { title: 'namespaced, watched one by one', exported: 'kettles', informerScope: 'Namespaced', isolation: 'None' },
  { title: 'namespaced, watched at once', exported: 'kettles', informerScope: 'Cluster', isolation: 'Prefixed' },
];

const exportName = 'kitchen';
const patience = { timeoutMs: 30_000 };

for (const { title, exported, ...options } of scenarios) {
  describe(`two consumers of one provider: ${title}`, () => {
    let stage: BindingStage;
    let kind: FixtureKind;

    before(async function () {
      this.timeout(180_000);
      stage = await BindingStage.open({ ...options, consumers: 2, claims: ['secrets'] });
      kind = stage.kinds[exported];
      await Promise.all(stage.sides.map(({ consumer }) => consumer.start()));
    });
    after(async () => stage.close());

    for (const which of [0, 1] as const) {
      describe(`consumer ${which + 1}`, () => {
        const side = (): Side => stage.sides[which] ?? stage.side;
        const name = (): ObjectName => ({
          ...(kind.inConsumer.namespaced ? { namespace: side().namespace } : {}),
          name: `evening-${which}`,
        });
        const copy = (): Promise<KubeObject | undefined> => stage.copy(kind, name(), side());

        it('binds', async () => {
          const { consumer, backend } = side();
          await backend.export({ name: exportName, kinds: [kind], claims: [claimOf(kind)] });
          await consumer.bind(exportName, await consumer.connect(backend.identity.kubeconfig));
          for (const type of ['Ready', 'SecretValid', 'InformersSynced', 'Heartbeating', 'Connected', 'SchemaInSync']) {
            await consumer.whenCondition(exportName, type);
          }
          const crd = await consumer.get(customResourceDefinitions, { name: kind.crd.metadata.name });
          assert.equal(own(crd?.spec, 'scope'), kind.inConsumer.namespaced ? 'Namespaced' : 'Cluster');
          const binding = (await consumer.stores()).bindings.get(exportName);
          const { group, plural: resource } = kind.inConsumer;
          assert.deepEqual(binding?.boundSchemas, [{ group, resource }]);
          assert.deepEqual(binding?.permissionClaims, [claimOf(kind)]);
          assert.equal(binding?.providerPrettyName, 'Acme Kitchens');
        });

        it('sends heartbeats to the provider', async () => {
          const { backend } = side();
          const clusterBinding = await until(
            'a heartbeat',
            () => {
              const found = backend.stores.clusterBindings.get(`${backend.clusterNamespace}/cluster`);
              return found?.lastHeartbeatTime === undefined ? undefined : found;
            },
            patience,
          );
          assert.equal(clusterBinding.heartbeatInterval, '5m0s');
          assert.equal(clusterBinding.consumerSecretRef?.namespace, 'kube-bind');
          for (const type of ['Connected', 'ConsumerInSync', 'ProviderInSync']) {
            await until(
              `${type} of the export`,
              () =>
                backend.stores.exports
                  .get(`${backend.clusterNamespace}/${exportName}`)
                  ?.conditions.some((one) => one.type === type && one.status === 'True'),
              patience,
            );
          }
        });

        it('copies an object to the provider, with the annotations of its original', async () => {
          const object = await stage.create(kind, name(), specOf(side(), 100), side());
          const found = await stage.whenCopy(kind, name(), undefined, side());
          assert.deepEqual(found.spec, object.spec);
          const annotations = found.metadata.annotations ?? {};
          assert.equal(annotations[clusterNamespaceAnnotation], side().backend.clusterNamespace);
          assert.equal(annotations[consumerNamespaceAnnotation], name().namespace ?? '');
          assert.equal(annotations[consumerUidAnnotation], object.metadata.uid);
        });

        it('annotates its object before the first status arrives', async () => {
          const found = await copy();
          await stage.report(kind, name(), { result: 'heating', heat: 40 }, side());
          const object = await stage.whenObject(kind, name(), ({ status }) => own(status, 'heat') === 40, side());
          assert.deepEqual(object.status, { result: 'heating', heat: 40 });
          assert.deepEqual(object.metadata.finalizers, [syncerFinalizer]);
          assert.equal(object.metadata.annotations?.[providerUidAnnotation], found?.metadata.uid);
          assert.equal(object.metadata.annotations?.[providerNamespaceAnnotation], found?.metadata.namespace ?? '');
        });

        it('copies changes, including removals', async () => {
          const { client } = side().consumer;
          await client.mergePatch(kind.inConsumer, name(), { spec: { heat: 200, note: 'later' } });
          await stage.whenCopy(kind, name(), ({ spec }) => own(spec, 'note') === 'later', side());
          await client.mergePatch(kind.inConsumer, name(), { spec: { note: null } });
          const found = await stage.whenCopy(kind, name(), ({ spec }) => own(spec, 'note') === undefined, side());
          assert.equal(own(found.spec, 'heat'), 200);
        });

        it('copies claimed Secrets: those with the label and those that objects reference', async () => {
          const { consumer, backend, namespace } = side();
          const secret = (name: string, labels?: Record<string, string>): KubeObject =>
            kitchenSecret({ namespace, name }, name, labels);
          await consumer.client.create(secrets, secret('nobodys', {}));
          await consumer.client.create(secrets, secret('labelled'));
          await consumer.client.create(secrets, secret('referred', {}));
          const serviceNamespace = await backend.whenNamespace(namespace);
          const { client } = stage.provider;
          for (const secretName of ['labelled', 'referred']) {
            const where = { namespace: serviceNamespace, name: secretName };
            const found = await until(`Secret ${secretName}`, () => getIfThere(client, secrets, where), patience);
            assert.deepEqual(found['data'], secret(secretName)['data']);
            assert.equal(found.metadata.labels?.[ownerLabel], 'consumer');
          }
          assert.equal(await getIfThere(client, secrets, { namespace: serviceNamespace, name: 'nobodys' }), undefined);
        });

        it('deletes the copy with the object', async () => {
          await side().consumer.client.delete(kind.inConsumer, name());
          await stage.whenObjectGone(kind, name(), side());
          assert.equal(await copy(), undefined);
        });

        it('caused no denied call', () => {
          assert.deepEqual(side().consumer.refusals(), []);
          assert.deepEqual(stage.providerRefusals(side()), []);
        });
      });
    }
  });
}

/** A Secret with the label `app: kitchen`, and every one that an object names in `spec.secretRefs`. */
function claimOf({ inProvider: { group, plural } }: FixtureKind): PermissionClaim {
  return {
    ...kitchenClaim,
    selector: {
      ...kitchenClaim.selector,
      references: [
        {
          group,
          resource: plural,
          jsonPath: { name: 'spec.secretRefs.#.name', namespace: 'spec.secretRefs.#.namespace' },
        },
      ],
    },
  };
}

function specOf({ namespace }: Side, heat: number): Record<string, unknown> {
  return { heat, secretRefs: [{ name: 'referred', namespace }] };
}
