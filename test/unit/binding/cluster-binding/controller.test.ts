import assert from 'node:assert/strict';
import { clusterBindings, keepKubeconfigAnnotation } from '../../../../src/api/binding/names.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { secrets } from '../../../../src/api/resources.ts';
import { clusterBindingController } from '../../../../src/binding/cluster-binding/controller.ts';
import { heartbeatDueMs } from '../../../../src/binding/cluster-binding/plan-status.ts';
import type { OpenSession } from '../../../../src/binding/sessions/open-session.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import type { RecordedEvent } from '../../../../src/kube/event-object.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../../src/kube/store.ts';
import { depsOf } from '../../../support/binding/deps.ts';
import { conditionsOf } from '../../../support/binding/memory-stage.ts';
import { clusterBindingManifest } from '../../../support/binding/objects.ts';
import { acme, kubeconfigText, loadYamlOnce, SessionStage } from '../../../support/binding/session-stage.ts';
import { unlisted } from '../../../support/binding/stores.ts';
import { settleIo, until } from '../../../support/io.ts';
import { pluck } from '../../../support/pluck.ts';

const place = { namespace: 'kb-acme', name: 'cluster' };
const consumerSecret = { namespace: 'kube-bind', name: 'kubeconfig-acme' };
const failedHeartbeat = (why: string) =>
  `the heartbeat to ${acme} failed: ${why}; the server retries; if the provider denies the heartbeat, ask it for a kubeconfig that permits heartbeats`;

describe('ClusterBinding', () => {
  let stage: SessionStage;
  let events: RecordedEvent[];
  let stop: AbortController;
  before(loadYamlOnce);
  beforeEach(() => {
    stage = new SessionStage();
    events = [];
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  async function start(text: string | undefined = kubeconfigText(), own = kubeconfigText()): Promise<OpenSession> {
    if (text !== undefined) offer(text);
    stage.secret(own);
    stage.bind();
    await stage.reconcile();
    await settleIo();
    const [session] = stage.registry.list();
    assert.ok(session);
    const controller = clusterBindingController(session, {
      ...depsOf(stage.consumer, stage.clock, { stores: stage.stores }),
      events: { record: (event) => void events.push(event), close: () => Promise.resolve() },
      registry: stage.registry,
      watches: stage.watches,
      connect: (credentials) => stage.connect(credentials),
      version: '0.1.0',
    });
    void controller.run(stop.signal);
    await settle();
    return session;
  }

  const settle = (ms = 0): Promise<void> => stage.settle(ms);

  /** Puts a kubeconfig into the provider's Secret. */
  function offer(text: string, key = 'kubeconfig'): void {
    stage.acme.cluster.put(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'kb-acme', name: 'kubeconfig' },
      data: { [key]: Buffer.from(text).toString('base64') },
    });
  }

  const clusterBinding = () => stage.acme.cluster.find(clusterBindings, place);
  const status = () => clusterBinding()?.status as Record<string, unknown> | undefined;
  const condition = (type: string) => conditionsOf(clusterBinding())[type];
  const held = (): string => {
    const data = (stage.consumer.find(secrets, consumerSecret) as KubeObject | undefined)?.['data'];
    return Buffer.from((data as Record<string, string> | undefined)?.['kubeconfig'] ?? '', 'base64').toString();
  };
  const heartbeat = (session: OpenSession) => stage.registry.heartbeat(session);

  it('gets all fields in one write, and then none until the next heartbeat', async () => {
    const session = await start();
    assert.deepEqual(stage.acme.cluster.writes, ['patch clusterbindings/status kb-acme/cluster']);
    assert.equal(status()?.['lastHeartbeatTime'], formatTime(stage.clock.now()));
    assert.deepEqual(status()?.['consumerSecretRef'], consumerSecret);
    assert.deepEqual(heartbeat(session), { ok: true });
    assert.deepEqual(stage.consumer.writes, []);
    await settle(heartbeatDueMs - 1000);
    assert.equal(stage.acme.cluster.writes.length, 1);
    await settle(1000);
    assert.equal(stage.acme.cluster.writes.length, 2);
    await settle(3600_000);
    const beats = stage.acme.cluster.writes.length;
    assert.ok(beats >= 24 && beats <= 27, `${beats} writes in an hour`);
  });

  it('is read before a heartbeat of another konnector counts as ours', async () => {
    const lastHeartbeatTime = formatTime(stage.clock.now());
    const first = await start();
    const before = status();
    stage.acme.cluster.put(clusterBindings, clusterBindingManifest({ status: { ...before, lastHeartbeatTime } }));
    stop.abort();
    stop = new AbortController();
    stage.acme.cluster.calls.length = 0;
    stage.reconciler.suspend();
    const session = await start();
    assert.notEqual(session, first);
    assert.deepEqual(stage.acme.cluster.writes, []);
    assert.ok(stage.acme.cluster.calls.some(({ verb, plural }) => verb === 'get' && plural === 'clusterbindings'));
    assert.deepEqual(heartbeat(session), { ok: true });
  });

  it('has no heartbeat while writes are rejected, and gets one as soon as they succeed', async () => {
    stage.acme.cluster.fault = ({ verb }) => {
      if (verb === 'patch') throw new Error('no');
    };
    const session = await start();
    assert.deepEqual(heartbeat(session), { ok: false, message: failedHeartbeat('no') });
    stage.acme.cluster.fault = () => {};
    await settle(5000);
    assert.deepEqual(heartbeat(session), { ok: true });
  });

  it('has no heartbeat from half a minute after the provider fell silent until the provider answers again', async () => {
    const session = await start();
    await settle(60_000);
    const asked = stage.acme.cluster.calls.filter(({ verb }) => verb === 'get').length;
    assert.equal(asked, 0, 'nothing is asked of one that is heard');
    stage.acme.down = true;
    await settle(6_000);
    assert.deepEqual(heartbeat(session), { ok: false, message: failedHeartbeat('connect ECONNREFUSED') });
    stage.acme.recover();
    await settle(6_000);
    assert.deepEqual(heartbeat(session), { ok: true });
    assert.equal(stage.acme.cluster.writes.length, 1);
  });

  it('has no heartbeat while it does not exist', async () => {
    stage.acme.cluster.drop(clusterBindings, place);
    const session = await start();
    const beat = heartbeat(session);
    assert.ok(beat && !beat.ok);
    assert.match(beat.message, /ClusterBinding kb-acme\/cluster does not exist/);
    stage.acme.cluster.put(clusterBindings, clusterBindingManifest());
    await settle();
    assert.deepEqual(heartbeat(session), { ok: true });
  });

  describe('a new kubeconfig of the provider', () => {
    it('is copied only to its key, with an Event', async () => {
      await start();
      const before = stage.consumer.find(secrets, consumerSecret) as KubeObject;
      stage.consumer.put(secrets, { ...before, type: 'mine', data: { ...(before['data'] as object), other: 'eA==' } });
      offer(kubeconfigText({ token: 'second' }));
      // Reading a kubeconfig takes real time.
      await until(() => held() === kubeconfigText({ token: 'second' }), 'the copy');
      await settle();
      const after = stage.consumer.find(secrets, consumerSecret) as KubeObject;
      assert.equal(after['type'], 'mine');
      assert.equal((after['data'] as Record<string, string>)['other'], 'eA==');
      assert.deepEqual(stage.consumer.writes, ['patch secrets kube-bind/kubeconfig-acme']);
      assert.deepEqual(pluck(events, 'reason'), ['KubeconfigUpdated']);
      assert.equal(condition('SecretValid')?.status, 'True');
      assert.equal(stage.open.length, 1);
    });

    it('is copied if the Secret of the consumer is missing', async () => {
      const session = await start();
      stage.dropSecret();
      await stage.reconcile();
      await until(() => held() === kubeconfigText(), 'the copy');
      assert.deepEqual(stage.consumer.writes, ['create secrets kube-bind/kubeconfig-acme']);
      const { metadata } = stage.consumer.find(secrets, consumerSecret) as KubeObject;
      assert.deepEqual(metadata.labels, { 'app.kubernetes.io/name': 'drawbridge' });
      await stage.reconcile();
      assert.equal(stage.registry.serving({ ...consumerSecret, key: 'kubeconfig' }), session);
    });

    const refused: [what: string, text: string, reason: string, says: RegExp][] = [
      ['does not exist', '', 'ProviderSecretNotFound', /Secret kb-acme\/kubeconfig not found/],
      ['is no kubeconfig', 'hello', 'ProviderSecretInvalid', /it is not a YAML mapping/],
      ['has no namespace', kubeconfigText({ namespace: '' }), 'ProviderSecretInvalid', /has no namespace; set the/],
      ...['https://10.0.0.1', 'https://acme.example:8443', `${acme}/clusters/other`, acme.replace('https', 'http')].map(
        (server): [string, string, string, RegExp] => [
          `names ${server} instead of ${acme}`,
          kubeconfigText({ server }),
          'ProviderSecretInvalid',
          /a provider may not change the server|https/,
        ],
      ),
      ['is rejected by the provider', kubeconfigText({ token: 'bad' }), 'ProviderSecretInvalid', /Unauthorized/],
    ];
    for (const [what, text, reason, says] of refused) {
      it(`is not copied if it ${what}`, async () => {
        stage.acme.revoked.add('bad');
        const session = await start();
        if (text === '') stage.acme.cluster.drop(secrets, { namespace: 'kb-acme', name: 'kubeconfig' });
        else offer(text);
        await until(() => condition('SecretValid')?.status === 'False', 'the condition');
        await settle();
        assert.equal(held(), kubeconfigText());
        const found = condition('SecretValid');
        assert.deepEqual([found?.status, found?.reason], ['False', reason]);
        assert.match(found?.message ?? '', says);
        assert.equal(condition('Ready')?.reason, reason);
        assert.deepEqual(heartbeat(session), { ok: true });
        assert.equal(stage.open.length, 1);
        const writes = stage.acme.cluster.writes.length;
        await settle(heartbeatDueMs * 4);
        assert.ok(stage.acme.cluster.writes.length - writes <= 4, 'nothing but heartbeats');
      });
    }

    /** The watches of named Secrets of the consumer never list, as without permission to list them. */
    function unlistSecrets(): void {
      const watch = stage.consumer.watch.bind(stage.consumer);
      stage.consumer.watch = <T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> =>
        spec.resource === secrets && spec.fieldSelector !== undefined ? unlisted(spec, stage.clock) : watch(spec);
    }

    it('is not reported as valid while the Secret of the consumer cannot be read', async () => {
      unlistSecrets();
      const session = await start();
      stage.acme.cluster.drop(secrets, { namespace: 'kb-acme', name: 'kubeconfig' });
      await settle();
      stage.consumer.fault = ({ verb, plural }) => {
        if (verb === 'get' && plural === 'secrets') throw new ApiError(403, 'Forbidden', 'secrets is forbidden');
      };
      offer(kubeconfigText({ token: 'second' }));
      await settle(10_000);
      assert.equal(condition('SecretValid')?.reason, 'ProviderSecretNotFound');
      assert.deepEqual(heartbeat(session), { ok: true });
      stage.consumer.fault = () => undefined;
      await settle(10_000);
      await until(() => held() === kubeconfigText({ token: 'second' }), 'the copy');
    });

    it('is copied once the keep annotation is removed', async () => {
      stage.bind();
      await start();
      stage.secret(kubeconfigText(), { annotations: { [keepKubeconfigAnnotation]: 'true' } });
      offer(kubeconfigText({ token: 'second' }));
      await settle();
      assert.equal(held(), kubeconfigText());
      stage.secret(kubeconfigText());
      await until(() => held() === kubeconfigText({ token: 'second' }), 'the copy');
    });
  });
});
