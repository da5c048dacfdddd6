import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { issue } from '../../../sandbox/pki.ts';
import { portOf } from '../../../sandbox/ports.ts';
import { until } from '../../../sandbox/wait.ts';
import { notificationProviders } from '../../../src/api/notify/notification-provider.ts';
import { notificationSubscriptions } from '../../../src/api/notify/notification-subscription.ts';
import { execRequest } from '../../support/access-requests.ts';
import { NotificationReceiver } from '../../support/notification-receiver.ts';
import { NotifyStage } from '../../support/notify-stage.ts';
import { testNamespace } from '../../support/plane.ts';

/** The owner of a namespace writes providers and subscriptions in it, and reads and writes its Secrets. */
describe('the owner of a namespace', () => {
  let stage: NotifyStage;

  before(async function () {
    this.timeout(180_000);
    stage = await NotifyStage.open();
  });
  after(() => stage?.close());

  const api = (namespace: string, plural: string): string =>
    `/apis/access.drawbridge.dev/v1alpha1/namespaces/${namespace}/${plural}`;
  const readReason = async (namespace: string, plural: string, name: string): Promise<string | undefined> => {
    const { body } = await stage.access.plane.probe(`${api(namespace, plural)}/${name}`);
    const { conditions = [] } = (body as { status?: { conditions?: { type: string; reason: string }[] } }).status ?? {};
    return conditions.find(({ type }) => type === 'Ready')?.reason;
  };
  const hasReason = (namespace: string, plural: string, name: string, reason: string): Promise<unknown> =>
    until(`${name} to be ${reason}`, async () => (await readReason(namespace, plural, name)) === reason, {
      timeoutMs: 30_000,
    });

  it('does not hear of requests of another namespace', async () => {
    const other = await testNamespace('other');
    await stage.provider('shared', { namespaces: [other] });
    await stage.access.plane.call('POST', api(other, 'notificationsubscriptions'), {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'NotificationSubscription',
      metadata: { name: 'shared' },
      spec: { providerRef: { name: 'shared', namespace: stage.access.namespace }, events: ['requested'] },
    });
    await hasReason(other, 'notificationsubscriptions', 'shared', 'Ready');
    await stage.provider('own');
    await stage.subscribe('own', { events: ['granted'] });
    await stage.ready(notificationSubscriptions, 'own', 'Ready');
    await stage.access.createReady(stage.access.alice, execRequest('for-owners'));
    await stage.told('granted', 'for-owners');
    assert.deepEqual(stage.typesOf('for-owners'), ['granted']);
  });

  it('cannot use a provider that does not name their namespace', async () => {
    const other = await testNamespace('stranger');
    await stage.provider('private');
    await stage.access.plane.call('POST', api(other, 'notificationsubscriptions'), {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'NotificationSubscription',
      metadata: { name: 'private' },
      spec: { providerRef: { name: 'private', namespace: stage.access.namespace }, events: ['requested'] },
    });
    await hasReason(other, 'notificationsubscriptions', 'private', 'ProviderNotAllowed');
  });

  it('cannot use a Secret of another type, also with the right keys', async () => {
    const { plane, namespace } = stage.access;
    const { url, signingKey } = stage.receiver;
    await plane.call('POST', `/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: 'foreign' },
      type: 'Opaque',
      stringData: { address: url, signingKey },
    });
    await plane.call('POST', api(namespace, 'notificationproviders'), {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'NotificationProvider',
      metadata: { name: 'foreign' },
      spec: { type: 'Webhook', secretRef: { name: 'foreign' }, caBundle: plane.authority.certificate },
    });
    await stage.ready(notificationProviders, 'foreign', 'SecretInvalid');
  });

  it('cannot use a Secret that the server may not read', async () => {
    const other = await testNamespace('unreadable');
    const { plane } = stage.access;
    await plane.call('POST', `/api/v1/namespaces/${other}/secrets`, {
      metadata: { name: 'sink' },
      type: 'access.drawbridge.dev/notification-provider',
      stringData: { address: stage.receiver.url, signingKey: stage.receiver.signingKey },
    });
    await plane.call('POST', api(other, 'notificationproviders'), {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'NotificationProvider',
      metadata: { name: 'sink' },
      spec: { type: 'Webhook', secretRef: { name: 'sink' }, caBundle: plane.authority.certificate },
    });
    await hasReason(other, 'notificationproviders', 'sink', 'SecretUnreadable');
  });

  it('is not led elsewhere by a redirect', async () => {
    const { plane } = stage.access;
    const elsewhere = await NotificationReceiver.open(plane.authority);
    const { certificate: cert, key } = issue(plane.authority, { commonName: 'redirect', serves: ['localhost'] });
    const redirect = createServer({ cert, key }, (request, response) => {
      request.resume();
      response.writeHead(307, { location: elsewhere.url }).end();
    });
    await new Promise<void>((resolve) => redirect.listen(0, '127.0.0.1', resolve));
    try {
      await stage.provider(
        'redirected',
        {},
        { address: `https://localhost:${portOf(redirect)}/`, signingKey: stage.receiver.signingKey },
      );
      await stage.subscribe('redirected', { events: ['requested'] });
      await stage.ready(notificationSubscriptions, 'redirected', 'Ready');
      await stage.access.createReady(stage.access.alice, execRequest('redirected'));
      await stage.ready(notificationProviders, 'redirected', 'Refused');
      assert.equal(elsewhere.received.length + elsewhere.refused, 0);
    } finally {
      elsewhere.close();
      redirect.close();
      redirect.closeAllConnections();
    }
  });

  it('cannot reach an address that the administrator did not allow', async function () {
    this.timeout(120_000);
    await stage.process.stop();
    // The flag counts as set last.
    await stage.start('--notify-allow-cidrs=192.0.2.0/24');
    const { port } = new URL(stage.receiver.url);
    const before = stage.receiver.received.length + stage.receiver.refused;
    const hosts = ['localhost', '127.0.0.1', '[::1]', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '0.0.0.0'];
    for (const [index, host] of hosts.entries()) {
      const name = `probe-${index}`;
      const address = `https://${host}:${port}/`;
      await stage.provider(name, {}, { address, signingKey: stage.receiver.signingKey });
      await stage.access.plane.call('PATCH', `${api(stage.access.namespace, 'notificationproviders')}/${name}`, {
        metadata: { annotations: { 'access.drawbridge.dev/notify-test': 'once' } },
      });
      await stage.ready(notificationProviders, name, 'AddressNotAllowed');
    }
    assert.equal(stage.receiver.received.length + stage.receiver.refused, before);
  });
});
