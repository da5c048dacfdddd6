import assert from 'node:assert/strict';
import { notificationProviders, testAnnotation } from '../../../src/api/notify/notification-provider.ts';
import { notificationSubscriptions } from '../../../src/api/notify/notification-subscription.ts';
import { configMaps, secrets } from '../../../src/api/resources.ts';
import { formatTime, sleep } from '../../../src/kit/clock.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { factId } from '../../../src/notify/fact.ts';
import { settledAfterMs } from '../../../src/notify/outbox/outbox.ts';
import { resourceOf } from '../../support/notify/objects.ts';
import { NotifyStage } from '../../support/notify/stage.ts';

const second = 1_000;
const minute = 60 * second;

describe('the controllers of notifications', () => {
  let stage: NotifyStage;
  beforeEach(() => {
    stage = new NotifyStage();
  });
  afterEach(() => stage.stop());

  /** A replica leads; one provider gets all events of payments. */
  const start = async (over: object = {}) => {
    stage.provider('chat', over);
    stage.subscribe('chat');
    return stage.lead();
  };

  it('tell a new request within a second, and write nothing but the outbox once a minute', async () => {
    await start();
    const writes = stage.outboxWrites;
    stage.request('debug');
    await stage.clock.advance(second);
    assert.deepEqual(stage.told(), ['requested debug']);
    assert.equal(stage.sent[0]?.message.id, factId('debug', 'requested'));
    assert.equal(stage.outboxWrites, writes);
    await stage.clock.advance(minute);
    assert.equal(stage.outboxWrites, writes + 1);
  });

  it('do not repeat it after a shutdown, nor when it changes', async () => {
    const first = await start();
    stage.request('debug');
    await stage.clock.advance(second);
    void first.shutDown();
    await stage.clock.advance(second);
    await stage.lead();
    stage.request('debug', { status: { reasonLink: 'https://x.example' } });
    await stage.clock.advance(minute);
    assert.deepEqual(stage.told(), ['requested debug']);
  });

  it('tell it again after a crash, with the same id', async () => {
    const first = await start();
    stage.request('debug');
    await stage.clock.advance(second);
    first.kill();
    await stage.lead();
    await stage.clock.advance(second);
    assert.deepEqual(stage.told(), ['requested debug', 'requested debug']);
    assert.equal(new Set(stage.sent.map(({ message }) => message.id)).size, 1);
  });

  describe('at the start of a leadership', () => {
    const rows = [
      { what: 'do not tell what happened before the time that the outbox covers', ageMs: 20 * minute, told: [] },
      { what: 'tell what happened since then', ageMs: 5 * minute, told: ['requested debug'] },
    ];
    for (const { what, ageMs, told } of rows) {
      it(what, async () => {
        const first = await start();
        first.kill();
        await stage.clock.advance(30 * minute);
        const nowMs = stage.clock.now();
        stage.request('debug', { metadata: { creationTimestamp: formatTime(nowMs - ageMs) } });
        stage.putOutbox(0, JSON.stringify({ floorMs: nowMs - settledAfterMs }));
        await stage.lead();
        await stage.clock.advance(second);
        assert.deepEqual(stage.told(), told);
      });
    }
  });

  it('store what a sink does not answer within two seconds, and the next leader sends it', async () => {
    stage.answers['chat'] = () => ({ delivered: false, code: 'Unreachable', said: 'refused' });
    const first = await start();
    stage.request('debug');
    await stage.clock.advance(3 * second);
    first.kill();
    stage.api.drop(resourceOf('PodAccessRequest'), { namespace: 'payments', name: 'debug' });
    delete stage.answers['chat'];
    stage.sent.length = 0;
    await stage.lead();
    await stage.clock.advance(minute);
    assert.deepEqual(stage.told(), ['requested debug']);
  });

  it('drop a request that was decided before its sink answered', async () => {
    stage.answers['chat'] = ({ facts }) =>
      facts[0]?.event === 'requested'
        ? { delivered: false, code: 'Refused', said: '500' }
        : { delivered: true, said: 'ok' };
    await start();
    stage.request('debug');
    await stage.clock.advance(second);
    const at = formatTime(stage.clock.now());
    stage.request('debug', { status: { ended: { at, how: 'Denied', reason: 'VoteDenied', keptUntil: at } } });
    await stage.clock.advance(10 * minute);
    assert.deepEqual(stage.told(), ['requested debug', 'denied debug']);
  });

  it('tell that a request ended which was deleted while another replica led', async () => {
    const first = await start();
    stage.request('debug');
    await stage.clock.advance(second);
    const standby = stage.lead();
    first.kill();
    stage.api.drop(resourceOf('PodAccessRequest'), { namespace: 'payments', name: 'debug' });
    await stage.clock.advance(minute);
    await standby;
    assert.ok(stage.told().includes('ended debug'));
  });

  describe('for a provider', () => {
    it('with a Secret that does not exist say what to do, and send when it does', async () => {
      await start({ secretRef: { name: 'chat' } });
      stage.request('debug');
      await stage.clock.advance(second);
      assert.equal(stage.condition('chat')?.reason, 'SecretInvalid');
      stage.secret('chat');
      await stage.clock.advance(2 * minute);
      assert.deepEqual(stage.told(), ['requested debug']);
      assert.deepEqual([stage.condition('chat')?.status, stage.condition('chat')?.reason], ['True', 'Ready']);
    });

    it('whose Secret may not be read or has another type say so', async () => {
      await start({ secretRef: { name: 'chat' } });
      stage.secret('chat', 'Opaque');
      stage.request('debug');
      await stage.clock.advance(second);
      assert.equal(stage.condition('chat')?.reason, 'SecretInvalid');
      stage.api.fault = ({ plural }) => {
        if (plural === secrets.plural) throw new ApiError(403, 'Forbidden', 'no');
      };
      await stage.clock.advance(2 * minute);
      assert.equal(stage.condition('chat')?.reason, 'SecretUnreadable');
      assert.match(stage.condition('chat')?.message ?? '', /ServiceAccount drawbridge-notify.*resourceNames \[chat\]/);
      assert.deepEqual(stage.told(), []);
    });

    it('that is gone send nothing until it is edited, also from another replica', async () => {
      stage.answers['chat'] = () => ({ delivered: false, code: 'Gone', said: 'HTTP 410' });
      const first = await start();
      stage.request('debug');
      await stage.clock.advance(minute);
      assert.equal(stage.sent.length, 1);
      assert.equal(stage.condition('chat')?.reason, 'Gone');
      first.kill();
      await stage.lead();
      await stage.clock.advance(10 * minute);
      assert.equal(stage.sent.length, 1);
      delete stage.answers['chat'];
      stage.provider('chat', { timeout: '5s' });
      await stage.clock.advance(11 * second);
      assert.equal(stage.sent.length, 2);
      assert.equal(stage.condition('chat')?.reason, 'Ready');
    });

    it('that is suspended wait', async () => {
      await start({ suspend: true });
      stage.request('debug');
      await stage.clock.advance(minute);
      assert.deepEqual([stage.condition('chat')?.reason, stage.sent.length], ['Suspended', 0]);
      stage.provider('chat');
      await stage.clock.advance(minute);
      assert.deepEqual([stage.condition('chat')?.reason, stage.told()], ['Ready', ['requested debug']]);
    });

    it('send nothing that happened more than a day before', async () => {
      await start({ suspend: true });
      stage.request('debug');
      await stage.clock.advance(second);
      stage.clock.setWall(stage.clock.now() + 25 * 60 * minute);
      await stage.clock.advance(2 * second);
      stage.provider('chat');
      await stage.clock.advance(minute);
      assert.deepEqual(stage.told(), []);
    });

    it('that is wrong say so before any message, and so do its subscriptions', async () => {
      await start({ address: 'http://chat.example' });
      assert.deepEqual([stage.condition('chat')?.status, stage.condition('chat')?.reason], ['False', 'SpecInvalid']);
      await stage.clock.advance(second);
      const its = () => stage.condition('tools-chat', notificationSubscriptions, 'payments')?.reason;
      assert.equal(its(), 'ProviderNotReady');
      stage.provider('chat');
      await stage.clock.advance(second);
      assert.equal(its(), 'Ready');
    });

    it('link to its console', async () => {
      await start({ linkBase: 'https://console.example' });
      stage.request('debug');
      await stage.clock.advance(second);
      assert.equal(stage.sent[0]?.message.linkBase, 'https://console.example');
    });

    it('without a message yet are not proven', async () => {
      await start();
      assert.deepEqual([stage.condition('chat')?.status, stage.condition('chat')?.reason], ['Unknown', 'Unproven']);
    });

    it('change its condition only with the reason', async () => {
      stage.answers['chat'] = ({ nowMs }) => ({ delivered: true, said: `at ${nowMs}` });
      await start();
      for (let i = 0; i < 20; i++) {
        stage.request(`debug-${i}`);
        await stage.clock.advance(5 * second);
      }
      const writes = stage.api.writes.filter((write) => write.startsWith('patch notificationproviders'));
      assert.equal(writes.length, 2);
    });

    it('send a test message for each new value of the annotation, five seconds apart', async () => {
      await start();
      for (const id of ['1', '1', '2', '3']) {
        stage.provider('chat', {}, 'tools', { [testAnnotation]: id });
        await stage.clock.advance(second);
      }
      assert.deepEqual(
        stage.sent.map(({ message }) => message.facts.length),
        [0],
      );
      await stage.clock.advance(10 * second);
      assert.equal(stage.sent.length, 2);
      // Any text may be in the annotation, and a header or a Message-ID must not have it.
      assert.match(stage.sent[0]?.message.id ?? '', /^test-[\w-]{22}$/);
      const { id, delivered, answer } = stage.lastTest('chat') ?? {};
      assert.deepEqual([id, delivered, answer], ['3', true, 'HTTP 200']);
    });

    it('neither repeat a test nor keep messages back while their status cannot be written', async () => {
      await start();
      stage.api.fault = ({ verb, plural }) => {
        if (verb === 'patch' && plural === notificationProviders.plural) throw new ApiError(403, 'Forbidden', 'no');
      };
      stage.provider('chat', {}, 'tools', { [testAnnotation]: '1' });
      await stage.clock.advance(2 * minute);
      stage.request('debug');
      await stage.clock.advance(minute);
      assert.deepEqual(stage.told(), ['', 'requested debug']);
      stage.api.fault = () => undefined;
      await stage.clock.advance(minute);
      assert.deepEqual([stage.lastTest('chat')?.id, stage.condition('chat')?.reason], ['1', 'Ready']);
      assert.equal(stage.sent.length, 2);
    });

    it('say why a test message was not sent', async () => {
      await start({ suspend: true });
      stage.provider('chat', { suspend: true }, 'tools', { [testAnnotation]: '1' });
      await stage.clock.advance(second);
      assert.equal(stage.lastTest('chat')?.delivered, false);
      assert.match(stage.lastTest('chat')?.answer ?? '', /suspend/);
      assert.equal(stage.sent.length, 0);
    });

    it('that is deleted drop its messages', async () => {
      stage.answers['chat'] = () => ({ delivered: false, code: 'Refused', said: '500' });
      await start();
      stage.request('debug');
      await stage.clock.advance(3 * second);
      stage.api.drop(notificationProviders, { namespace: 'tools', name: 'chat' });
      await stage.clock.advance(2 * minute);
      const sent = stage.sent.length;
      await stage.clock.advance(20 * minute);
      assert.equal(stage.sent.length, sent);
    });
  });

  it('name in each subscription why nothing is told', async () => {
    stage.provider('chat', { namespaces: [] });
    stage.provider('team');
    stage.subscribe('chat');
    stage.subscribe('none');
    stage.subscribe('team', ['ended'], { to: 'Requester' });
    await stage.lead();
    const reasonOf = (name: string) => stage.condition(`tools-${name}`, notificationSubscriptions, 'payments')?.reason;
    assert.deepEqual(['chat', 'none', 'team'].map(reasonOf), [
      'ProviderNotAllowed',
      'ProviderNotFound',
      'RequesterNeedsEmail',
    ]);
    stage.provider('chat');
    await stage.clock.advance(second);
    assert.equal(reasonOf('chat'), 'Ready');
  });

  it('use 100 subscriptions of a namespace', async () => {
    for (let i = 100; i <= 200; i++) stage.subscribe(`chat-${i}`);
    await stage.lead();
    const reasonOf = (name: string) => stage.condition(`tools-${name}`, notificationSubscriptions, 'payments')?.reason;
    assert.deepEqual(['chat-199', 'chat-200'].map(reasonOf), ['ProviderNotFound', 'TooManySubscriptions']);
  });

  it('are not delayed by a provider whose part of the outbox is full', async function () {
    this.timeout(60_000);
    stage.provider('down', {}, 'bad');
    stage.subscribe('down', ['requested'], {}, 'bad');
    stage.answers['down'] = () => ({ delivered: false, code: 'Unreachable', said: 'refused' });
    await start();
    for (let i = 0; i < 2_400; i++) {
      stage.request(`r-${i}`, { spec: { reason: 'x'.repeat(1000) } });
      if (i % 100 === 0) await stage.clock.advance(second);
    }
    await stage.clock.advance(2 * minute);
    const before = stage.sent.filter(({ sink }) => sink === 'chat').flatMap(({ message }) => message.facts).length;
    assert.equal(before, 2_400);
  });

  it('call at most 16 sinks of one namespace at a time, and then those of others at once', async () => {
    let calls = 0;
    for (let i = 0; i < 30; i++) {
      stage.provider(`hang-${i}`, {}, 'bad', { [testAnnotation]: '1' });
      stage.answers[`hang-${i}`] = async (_, signal) => {
        calls += 1;
        await sleep(stage.clock, 30 * second, signal);
        return { delivered: false, code: 'Unreachable', said: 'no answer' };
      };
    }
    await start();
    await stage.clock.advance(5 * second);
    assert.equal(calls, 16);
    stage.request('debug');
    await stage.clock.advance(second);
    assert.deepEqual(stage.told('chat'), ['requested debug']);
  });

  it('are not delayed by 90 sinks of one namespace that hang', async () => {
    for (let i = 0; i < 90; i++) {
      stage.provider(`hang-${i}`, {}, 'bad');
      stage.subscribe(`hang-${i}`, ['requested'], {}, 'bad');
      stage.answers[`hang-${i}`] = async (_, signal) => {
        await sleep(stage.clock, 10 * second, signal);
        return { delivered: false, code: 'Unreachable', said: 'no answer' };
      };
    }
    await start();
    for (let i = 0; i < 10; i++) {
      stage.request(`debug-${i}`);
      await stage.clock.advance(5 * second);
      assert.equal(stage.told('chat').length, i + 1);
    }
  });

  it('tell 1,000 requests in a minute in digests', async function () {
    this.timeout(60_000);
    await start();
    for (let i = 0; i < 1000; i++) {
      stage.request(`r-${i}`);
      await stage.clock.advance(60);
    }
    await stage.clock.advance(10 * second);
    const told = stage.sent.flatMap(({ message }) => message.facts.map(({ id }) => id));
    assert.deepEqual([told.length, new Set(told).size], [1000, 1000]);
    assert.ok(stage.sent.length <= 80, `${stage.sent.length} messages`);
    assert.ok(stage.sent.every(({ message }) => message.facts.length <= 100));
  });

  it('keep 2,200 facts of a sink that is down, and tell all when it is up', async function () {
    this.timeout(60_000);
    stage.answers['chat'] = () => ({ delivered: false, code: 'Unreachable', said: 'refused' });
    await start();
    for (let i = 0; i < 2200; i++) {
      stage.request(`r-${i}`);
      if (i % 100 === 0) await stage.clock.advance(second);
    }
    await stage.clock.advance(20 * minute);
    const bytes = stage.api.list(configMaps).map(({ data }) => Buffer.byteLength((data as { state: string }).state));
    assert.ok(Math.max(...bytes) <= 512 * 1024);
    delete stage.answers['chat'];
    stage.sent.length = 0;
    stage.provider('chat', { timeout: '5s' });
    await stage.clock.advance(2 * minute);
    const told = stage.sent.flatMap(({ message }) => message.facts.map(({ id }) => id));
    assert.deepEqual([told.length, new Set(told).size], [2200, 2200]);
  });
});
