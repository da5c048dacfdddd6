import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { notificationProviders } from '../../../src/api/notify/notification-provider.ts';
import { notificationSubscriptions } from '../../../src/api/notify/notification-subscription.ts';
import { execRequest } from '../../support/access-requests.ts';
import { NotifyStage } from '../../support/notify-stage.ts';

describe('messages and restarts', () => {
  let stage: NotifyStage;

  beforeEach(async function () {
    this.timeout(180_000);
    stage = await NotifyStage.open();
    await stage.provider('all');
    await stage.subscribe('all', { events: ['requested', 'granted', 'ended'] });
    await stage.ready(notificationSubscriptions, 'all', 'Ready');
  });
  afterEach(() => stage?.close());

  const storedBytes = async (): Promise<string> => {
    const { namespace } = stage.access.server.installation;
    const { body } = await stage.access.plane.probe(`/api/v1/namespaces/${namespace}/configmaps`);
    const { items } = body as { items: { metadata: { name: string }; data?: Record<string, string> }[] };
    return JSON.stringify(items.filter(({ metadata }) => metadata.name.startsWith('drawbridge-notify-outbox-')));
  };

  it('tells after a SIGKILL what the sink refused before, once it is stored', async function () {
    this.timeout(120_000);
    stage.receiver.answer = (response) => response.writeHead(503).end();
    await stage.access.createReady(stage.access.alice, execRequest('while-down'));
    await stage.told('granted', 'while-down');
    await until('the message to be stored', async () => (await storedBytes()).includes('while-down'), {
      timeoutMs: 15_000,
    });
    await stage.process.kill();
    stage.receiver.received.length = 0;
    stage.receiver.answer = (response) => response.writeHead(204).end();
    await stage.start();
    await stage.told('granted', 'while-down', 60_000);
    await stage.ready(notificationProviders, 'all', 'Ready');
  });

  it('tells what happened while it did not run', async function () {
    this.timeout(120_000);
    await stage.process.kill();
    await stage.access.createReady(stage.access.alice, execRequest('unseen'));
    await stage.start();
    await stage.told('granted', 'unseen', 60_000);
    // Nothing is left to decide.
    assert.deepEqual(stage.typesOf('unseen'), ['granted']);
  });

  it('repeats with the same ids, or not at all', async function () {
    this.timeout(120_000);
    await stage.access.createReady(stage.access.alice, execRequest('twice'));
    await stage.told('granted', 'twice');
    const before = new Set(stage.receiver.received.map(({ id }) => id));
    await stage.process.kill();
    await stage.start();
    await stage.access.createReady(stage.access.alice, execRequest('after'));
    await stage.told('granted', 'after', 60_000);
    const repeated = stage.receiver.received.filter(({ body }) => String(body['subject']).endsWith('/twice'));
    assert.ok(
      repeated.every(({ id }) => before.has(id)),
      JSON.stringify(repeated),
    );
  });
});
