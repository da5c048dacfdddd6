import assert from 'node:assert/strict';
import { apiServiceBindings } from '../../../../src/api/binding/names.ts';
import { unreachableMs } from '../../../../src/binding/sessions/open-session.ts';
import type { ProviderSession } from '../../../../src/binding/sessions/provider-session.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import type { Projected, StoreSpec } from '../../../../src/kube/store.ts';
import { bindingManifest } from '../../../support/binding/objects.ts';
import { kubeconfigText, loadYamlOnce, SessionStage, secretKey } from '../../../support/binding/session-stage.ts';
import { settleIo } from '../../../support/io.ts';
import { pluck } from '../../../support/pluck.ts';

const other = 'https://other.example:6443';

describe('the reconciler of provider sessions', () => {
  let stage: SessionStage;
  before(loadYamlOnce);
  beforeEach(() => {
    stage = new SessionStage();
  });

  function session(secret = secretKey): ProviderSession {
    const found = stage.lookup(secret);
    assert.equal(found.kind, 'session', JSON.stringify(found));
    assert.ok(found.kind === 'session');
    return found.session;
  }

  function invalid(secret = secretKey): { reason: string; message: string; lastGood: ProviderSession | undefined } {
    const found = stage.lookup(secret);
    assert.ok(found.kind === 'invalid', found.kind);
    return { reason: found.reason, message: found.message, lastGood: found.lastGood };
  }

  /** Binds with a kubeconfig, and reconciles its Secret. */
  async function connect(): Promise<void> {
    stage.secret(kubeconfigText());
    stage.bind();
    await stage.reconcile();
  }

  const loops = (): string[] => [...stage.running.values()];

  it('opens a session for the Secret of a binding and starts its controllers', async () => {
    stage.secret(kubeconfigText());
    stage.bind();
    assert.deepEqual(stage.lookup(), { kind: 'pending' });
    await stage.reconcile();
    const { id, clusterNamespace } = session();
    assert.equal(clusterNamespace, 'kb-acme');
    assert.deepEqual(loops(), [`loop/${id}`]);
    await settleIo();
    assert.deepEqual(session().state, { kind: 'synced' });
    assert.equal(session().clusterNamespaceUid, 'uid-of-kb-acme');
    assert.doesNotMatch(id, /first/);
  });

  it('opens a session for a binding only once the binding is valid', async () => {
    stage.secret(kubeconfigText());
    stage.consumer.put(apiServiceBindings, bindingManifest({ spec: {} }));
    await stage.reconcile();
    assert.deepEqual(stage.lookup(), { kind: 'pending' });
    stage.bind();
    await stage.reconcile();
    session();
  });

  it('watches that Secret and no other', async () => {
    stage.secret(kubeconfigText());
    stage.bind();
    const before = stage.consumer.watches;
    await stage.reconcile();
    assert.equal(stage.consumer.watches, before + 1);
    stage.enqueued.length = 0;
    stage.secret('nothing of ours', { secret: 'kube-bind/else' });
    stage.secret('nothing of ours', { secret: 'default/kubeconfig-acme' });
    assert.deepEqual(stage.enqueued, []);
    stage.secret(kubeconfigText({ token: 'second' }));
    assert.deepEqual(stage.enqueued, [secretKey]);
    stage.unbind();
    await stage.reconcile();
    assert.equal(stage.consumer.watches, before);
  });

  it('shares a session among Secrets with the same credentials, and ends it with the last', async () => {
    stage.secret(kubeconfigText());
    stage.secret(`${kubeconfigText()}\n\n`, { secret: 'kube-bind/b' });
    stage.bind('a');
    stage.bind('b', { secret: 'kube-bind/b' });
    await stage.reconcile();
    await stage.reconcile('kube-bind/b');
    assert.equal(session(), session('kube-bind/b'));
    assert.deepEqual([...stage.registry.secretsOf(session())].sort(), ['kube-bind/b', secretKey]);
    assert.equal(stage.running.size, 1);
    stage.unbind('a');
    await stage.reconcile();
    assert.deepEqual(stage.open, ['first']);
    stage.unbind('b');
    await stage.reconcile('kube-bind/b');
    await stage.pool.closed();
    assert.deepEqual([stage.open, loops(), [...stage.registry.list()]], [[], [], []]);
    assert.deepEqual(stage.lookup(), { kind: 'pending' });
  });

  it('opens one session for each server, namespace, and credentials', async () => {
    const texts = [{}, { server: other }, { namespace: 'kb-2' }, { token: 'second' }].map(kubeconfigText);
    for (const [i, text] of texts.entries()) {
      stage.secret(text, { secret: `kube-bind/${i}` });
      stage.bind(`b${i}`, { secret: `kube-bind/${i}` });
      await stage.reconcile(`kube-bind/${i}`);
    }
    assert.equal(new Set(texts.map((_, i) => session(`kube-bind/${i}`).id)).size, 4);
  });

  it('opens a session for a labeled Secret without a binding, and ends it with the label', async () => {
    stage.secret(kubeconfigText(), { labelled: true });
    await stage.reconcile();
    assert.equal(session().state.kind, 'synced');
    stage.bind();
    await stage.reconcile();
    stage.secret(kubeconfigText());
    await stage.reconcile();
    session();
    stage.unbind();
    await stage.reconcile();
    assert.deepEqual(stage.lookup(), { kind: 'pending' });
    stage.secret(kubeconfigText(), { labelled: true });
    await stage.reconcile();
    stage.dropSecret();
    await stage.reconcile();
    await stage.pool.closed();
    assert.deepEqual(stage.open, []);
  });

  const unusable: [what: string, text: string | undefined, says: RegExp][] = [
    ['has no such key', undefined, /Secret .* has no key "kubeconfig"; it is empty; add the key/],
    ['is not YAML', '{', /Secret kube-bind\/kubeconfig-acme: invalid kubeconfig: it is not YAML; replace it/],
    ['has no current context', '{}', /current context "" not found/],
    ['has no namespace', kubeconfigText({ namespace: '' }), /"default" has no namespace; set the namespace/],
    ['runs a program for credentials', execPlugin(), /exec of the user is not allowed here/],
    ['names a server with plain http', kubeconfigText({ server: 'http://acme' }), /it must begin with https/],
  ];
  for (const [what, text, says] of unusable) {
    it(`opens no session for a Secret that ${what}`, async () => {
      stage.secret(text);
      stage.bind();
      assert.deepEqual(await stage.reconcile(), { kind: 'done' });
      const { reason, message, lastGood } = invalid();
      assert.equal(reason, 'KubeconfigSecretInvalid');
      assert.match(message, says);
      assert.equal(lastGood, undefined);
      assert.deepEqual(stage.connections, []);
      stage.secret(kubeconfigText());
      await stage.reconcile();
      session();
    });

    it(`keeps the current session if the Secret ${what}`, async () => {
      await connect();
      const good = session();
      stage.secret(text);
      await stage.reconcile();
      assert.equal(invalid().lastGood, good);
      assert.deepEqual([stage.open, stage.running.size], [['first'], 1]);
      stage.secret(kubeconfigText());
      await stage.reconcile();
      assert.equal(session(), good);
      assert.equal(stage.connections.length, 1);
    });
  }

  it('reports a missing Secret, and keeps its session', async () => {
    stage.bind();
    await stage.reconcile();
    assert.equal(invalid().reason, 'KubeconfigSecretNotFound');
    assert.match(invalid().message, /Secret kube-bind\/kubeconfig-acme not found; create it/);
    stage.secret(kubeconfigText());
    await stage.reconcile();
    const good = session();
    stage.dropSecret();
    await stage.reconcile();
    assert.equal(invalid().lastGood, good);
    assert.equal(invalid().reason, 'KubeconfigSecretNotFound');
  });

  it('reports a missing permission to read the Secret, and does not wait for a watch that may never sync', async () => {
    const { consumer, acme, clock } = stage;
    const open = consumer.watch.bind(consumer);
    consumer.watch = <T extends Projected>(spec: StoreSpec<T>) =>
      spec.fieldSelector === undefined ? open(spec) : acme.unsynced(spec, clock);
    stage.consumer.fault = () => {
      throw new ApiError(403, 'Forbidden', 'user "konnector" cannot get secrets');
    };
    stage.secret(kubeconfigText());
    stage.bind();
    assert.equal((await stage.reconcile()).kind, 'retry');
    assert.equal(invalid().reason, 'KubeconfigSecretInvalid');
    assert.match(invalid().message, /needs permission to get, list, and watch it: add namespace kube-bind to/);
    stage.consumer.fault = () => {};
    assert.equal((await stage.reconcile()).kind, 'done');
    session();
  });

  describe('when the credentials change', () => {
    beforeEach(async () => {
      stage.secret(kubeconfigText(), { labelled: true });
      stage.bind();
      await stage.reconcile();
      await settleIo();
    });

    it('verifies the new session, stops the old one, and starts the new one, in one reconcile', async () => {
      const old = session();
      const order: string[] = [];
      stage.acme.cluster.fault = (call) => {
        if (call.verb === 'get') order.push(`asked while ${loops().join()} runs`);
      };
      stage.secret(kubeconfigText({ token: 'second' }), { labelled: true });
      await stage.reconcile();
      await stage.pool.closed();
      assert.notEqual(session(), old);
      assert.deepEqual(order, [`asked while loop/${old.id} runs`]);
      assert.deepEqual(loops(), [`loop/${session().id}`]);
      assert.deepEqual(stage.open, ['second']);
    });

    const refusals: [what: string, text: string, arrange: (stage: SessionStage) => void, says: RegExp][] = [
      ['are rejected', kubeconfigText({ token: 'bad' }), ({ acme }) => acme.revoked.add('bad'), /failed: Unauthorized/],
      [
        'are for a server that does not answer',
        kubeconfigText({ server: other }),
        (all) => (all.provider(other).down = true),
        /a read from https:\/\/other\.example:6443 failed: connect ECONNREFUSED/,
      ],
      ['are for another provider', kubeconfigText({ server: other }), (all) => all.provider(other), /another provider/],
    ];
    for (const [what, text, arrange, says] of refusals) {
      it(`keeps the old session while the new credentials ${what}`, async () => {
        const old = session();
        arrange(stage);
        stage.secret(text);
        const result = await stage.reconcile();
        await stage.pool.closed();
        assert.equal(result.kind, 'retry');
        const { reason, message, lastGood } = invalid();
        assert.equal(reason, 'KubeconfigSecretInvalid');
        assert.match(message, says);
        assert.equal(lastGood, old);
        assert.deepEqual([stage.open, stage.running.size], [['first'], 1]);
        stage.changed.length = 0;
        await stage.reconcile();
        assert.deepEqual(stage.changed, []);
      });
    }

    it('accepts a new server for the same provider', async () => {
      stage.provider(other).uid = 'uid-of-kb-acme';
      stage.secret(kubeconfigText({ server: other }));
      await stage.reconcile();
      await stage.pool.closed();
      session();
      assert.deepEqual(stage.open, ['first']);
      assert.deepEqual(pluck(stage.connections, 'closed'), [true, false]);
    });

    it('uses new credentials as soon as the provider accepts them', async () => {
      stage.acme.revoked.add('second');
      stage.secret(kubeconfigText({ token: 'second' }));
      await stage.reconcile();
      stage.acme.revoked.delete('second');
      await stage.reconcile();
      await stage.pool.closed();
      assert.deepEqual(stage.open, ['second']);
    });

    it('keeps the old session for Secrets that still have its credentials', async () => {
      stage.secret(kubeconfigText(), { secret: 'kube-bind/b' });
      stage.bind('b', { secret: 'kube-bind/b' });
      await stage.reconcile('kube-bind/b');
      stage.secret(kubeconfigText({ token: 'second' }));
      await stage.reconcile();
      assert.notEqual(session(), session('kube-bind/b'));
      assert.deepEqual([stage.open.sort(), stage.running.size], [['first', 'second'], 2]);
      stage.secret(kubeconfigText({ token: 'second' }), { secret: 'kube-bind/b' });
      await stage.reconcile('kube-bind/b');
      await stage.pool.closed();
      assert.deepEqual([stage.open, stage.running.size], [['second'], 1]);
    });

    it('releases both sessions if the leadership is lost in between', async () => {
      const stop = new AbortController();
      stage.acme.cluster.fault = () => stop.abort(new Error('not leading'));
      stage.secret(kubeconfigText({ token: 'second' }));
      await assert.rejects(stage.reconcile(secretKey, stop.signal), /not leading/);
      stage.reconciler.suspend();
      await stage.pool.closed();
      assert.deepEqual([stage.open, loops()], [[], []]);
    });
  });

  it('reports an unreachable provider with the reason after two and a half minutes, and its return', async () => {
    stage.acme.down = true;
    await connect();
    await stage.clock.advance(unreachableMs - 1);
    assert.equal(session().state.kind, 'connecting');
    stage.changed.length = 0;
    await stage.clock.advance(1);
    const { state } = session();
    assert.ok(state.kind === 'unreachable');
    assert.match(state.message, /^Informers did not sync within 2m30s: .*apiserviceexports.*: connect ECONNREFUSED$/);
    assert.deepEqual(stage.changed, [secretKey]);
    stage.acme.recover();
    await settleIo();
    assert.deepEqual(session().state, { kind: 'synced' });
    assert.deepEqual(stage.changed, [secretKey, secretKey]);
    await stage.clock.advance(30_000);
    assert.equal(session().clusterNamespaceUid, 'uid-of-kb-acme');
  });

  it('reports a kubeconfig that fails twice within seconds, and clears the problem afterwards', async () => {
    stage.acme.down = true;
    await connect();
    assert.deepEqual(session().state, { kind: 'connecting' });
    stage.changed.length = 0;
    await stage.clock.advance(3_000);
    assert.deepEqual(session().state, { kind: 'connecting', problem: 'connect ECONNREFUSED' });
    await stage.clock.advance(60_000);
    assert.deepEqual(stage.changed, [secretKey], 'once');
    stage.acme.down = false;
    await stage.clock.advance(30_000);
    assert.deepEqual(session().state, { kind: 'connecting' });
    stage.acme.recover();
    await settleIo();
    assert.deepEqual(session().state, { kind: 'synced' });
  });

  it('serves each key of a Secret by itself', async () => {
    stage.secret(kubeconfigText());
    stage.bind('a');
    stage.bind('b', { secret: secretKey, key: 'other' });
    await stage.reconcile();
    session();
    assert.equal(stage.lookup(secretKey, 'other').kind, 'invalid');
    stage.unbind('b');
    await stage.reconcile();
    assert.equal(stage.lookup(secretKey, 'other').kind, 'pending');
    session();
  });

  it('notifies listeners when the result of a heartbeat changes', async () => {
    await connect();
    stage.changed.length = 0;
    for (const heartbeat of [
      { ok: true },
      { ok: true },
      { ok: false, message: 'a' },
      { ok: false, message: 'a' },
    ] as const)
      stage.registry.recordHeartbeat(session(), heartbeat);
    assert.deepEqual(stage.changed, [secretKey, secretKey]);
    assert.deepEqual(stage.registry.heartbeat(session()), { ok: false, message: 'a' });
  });
});

function execPlugin(): string {
  const config = JSON.parse(kubeconfigText());
  config.users[0].user = { exec: { command: 'sh', apiVersion: 'v1' } };
  return JSON.stringify(config);
}
