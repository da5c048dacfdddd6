import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { apiServiceNamespaces, ownerLabel, providerNamespaceAnnotation } from '../../../src/api/binding/names.ts';
import type { KubeObject, ObjectName } from '../../../src/api/object.ts';
import { namespaces, secrets } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Client } from '../../../src/kube/client.ts';
import { getIfThere } from '../../support/binding/consumer.ts';
import { kitchenClaim, kitchenSecret as secret } from '../../support/binding/kitchen-secrets.ts';
import { BindingStage } from '../../support/binding/stage.ts';

const patience = { timeoutMs: 30_000 };

describe('namespaces of a consumer and its provider', () => {
  let stage: BindingStage;
  /** The namespace that the provider requests. */
  let menu: string;
  /** The provider's namespace for `menu`. */
  let menuThere: string;

  const whenSecret = (client: Client, where: ObjectName, text: string): Promise<KubeObject> => {
    const encoded = Buffer.from(text).toString('base64');
    const check = async (): Promise<KubeObject | undefined> => {
      const found = await getIfThere(client, secrets, where);
      return own(found?.['data'], 'key') === encoded ? found : undefined;
    };
    return until(`Secret ${where.namespace}/${where.name} to say ${text}`, check, patience);
  };
  const whenGone = async (what: string, check: () => Promise<unknown>): Promise<void> => {
    await until(`${what} to be gone`, async () => (await check()) === undefined, patience);
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ claims: ['secrets'] });
    menu = `menu-${stage.id}`;
    menuThere = stage.side.backend.serviceNamespaceOf(menu);
    stage.alsoRemove(menu);
    await stage.side.consumer.start();
    await stage.bind('kitchen', [stage.kinds.kettles], { claims: [kitchenClaim], namespaces: [menu] });
  });
  after(async () => stage.close());

  it('are created in the consumer when the provider requests them', async () => {
    const { consumer } = stage.side;
    const found = await until('the namespace', () => consumer.get(namespaces, { name: menu }), patience);
    assert.equal(found.metadata.labels?.[ownerLabel], 'provider');
  });

  it('sync claimed objects of the provider down, including changes and deletions', async () => {
    const there = { namespace: menuThere, name: 'prices' };
    const here = { namespace: menu, name: 'prices' };
    const { client } = stage.provider;
    await client.create(secrets, secret(there, 'cheap'));
    await client.create(secrets, secret({ ...there, name: 'private' }, 'no', {}));
    const { metadata } = await whenSecret(stage.side.consumer.client, here, 'cheap');
    assert.equal(metadata.labels?.[ownerLabel], 'provider');
    assert.equal(metadata.annotations?.[providerNamespaceAnnotation], menuThere);
    await client.mergePatch(secrets, there, { data: { key: Buffer.from('dear').toString('base64') } });
    await whenSecret(stage.side.consumer.client, here, 'dear');
    assert.equal(await stage.side.consumer.get(secrets, { ...here, name: 'private' }), undefined);
    await client.delete(secrets, there);
    await whenGone('the Secret', () => stage.side.consumer.get(secrets, here));
  });

  it('keep a Secret of the consumer that has the name of a provider’s Secret', async () => {
    const { consumer } = stage.side;
    const here = { namespace: menu, name: 'safe' };
    await consumer.client.create(secrets, secret(here, 'mine', {}));
    await stage.provider.client.create(
      secrets,
      secret({ namespace: menuThere, name: 'safe' }, 'theirs', { app: 'kitchen', [ownerLabel]: 'provider' }),
    );
    const condition = await consumer.whenCondition('kitchen', 'Connected', 'False', { reason: 'ObjectsNotInSync' });
    assert.match(
      condition.message ?? '',
      /safe: the provider has its own object of this name, which would overwrite it/,
    );
    await whenSecret(consumer.client, here, 'mine');
    await stage.provider.client.delete(secrets, { namespace: menuThere, name: 'safe' });
    await whenSecret(consumer.client, here, 'mine');
  });

  it('sync objects of the consumer up as well, and the Secrets that it labels', async () => {
    const { consumer } = stage.side;
    await consumer.client.create(secrets, secret({ namespace: menu, name: 'guests' }, 'many'));
    await whenSecret(stage.provider.client, { namespace: menuThere, name: 'guests' }, 'many');
    await stage.create(stage.kinds.kettles, { namespace: menu, name: 'tea' });
    await stage.whenSynced(stage.kinds.kettles, { namespace: menu, name: 'tea' });
  });

  it('have no export of the provider as owner, whose deletion would delete their content', async () => {
    const { namespace, consumer, backend } = stage.side;
    await stage.create(stage.kinds.kettles, { namespace, name: 'tea' });
    await stage.whenSynced(stage.kinds.kettles, { namespace, name: 'tea' });
    await consumer.client.create(secrets, secret({ namespace, name: 'guests' }, 'few'));
    await whenSecret(
      stage.provider.client,
      { namespace: backend.serviceNamespaceOf(namespace), name: 'guests' },
      'few',
    );
    const where = { namespace: backend.clusterNamespace, name: namespace };
    const { metadata } = await stage.provider.client.get(apiServiceNamespaces, where);
    assert.equal(metadata.ownerReferences, undefined);
  });

  it('are deleted with their content in the provider when they are deleted in the consumer, and no others are', async () => {
    const { namespace, consumer, backend } = stage.side;
    await consumer.client.delete(namespaces, { name: namespace });
    await whenGone('the namespace here', () => consumer.get(namespaces, { name: namespace }));
    const asked = { namespace: backend.clusterNamespace, name: namespace };
    await whenGone('the request', () => getIfThere(stage.provider.client, apiServiceNamespaces, asked));
    const there = { name: backend.serviceNamespaceOf(namespace) };
    await whenGone('the namespace there', () => getIfThere(stage.provider.client, namespaces, there));
    assert.ok(await stage.copy(stage.kinds.kettles, { namespace: menu, name: 'tea' }));
    await consumer.whenCondition('kitchen', 'Ready');
  });

  it('stay in the consumer when the provider deletes its request', async () => {
    const { consumer, backend } = stage.side;
    const asked = { namespace: backend.clusterNamespace, name: menu };
    await stage.provider.client.delete(apiServiceNamespaces, asked);
    await whenGone('the namespace there', () => getIfThere(stage.provider.client, namespaces, { name: menuThere }));
    assert.ok(await consumer.get(namespaces, { name: menu }));
    assert.ok(await consumer.get(stage.kinds.kettles.inConsumer, { namespace: menu, name: 'tea' }));
  });

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});
