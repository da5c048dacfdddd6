import assert from 'node:assert/strict';
import { secrets, validatingWebhookConfigurations } from '../../../src/api/resources.ts';
import { madeByServerLabel } from '../../../src/certificates/stores.ts';
import { own } from '../../../src/kit/json-value.ts';
import { CertificateStage, secret } from './stage.ts';

const labels = { [madeByServerLabel]: 'true' };
const minutes = 60_000;

describe('the paths of the webhooks', () => {
  let stage: CertificateStage;
  const settle = (ms = 100): Promise<void> => stage.clock.advance(ms);
  const segment = (): string => stage.data()['path-segment'] ?? '';
  /** The route that each replica finds for a path. */
  const routes = (path: string): (string | undefined)[] => stage.paths.map(({ routeOf }) => routeOf(path));
  /** Whether every replica answers at every configured path. */
  const allAnswered = (): boolean =>
    stage.configuredPaths().every((path) => routes(path).every((route) => route === '/one' || route === '/two'));
  /** That the configured paths end with the current segment. */
  const assertConfigured = (): void =>
    assert.deepEqual(stage.configuredPaths(), [`/one/${segment()}`, `/two/${segment()}`]);
  const putSecret = (texts: Readonly<Record<string, string>>): void => {
    const encoded = Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    stage.putSecret({ labels, data: Object.fromEntries(encoded) });
  };
  /** Restores the state of a version without segments. */
  const forget = (): void => {
    const { 'path-segment': _, 'fixed-paths-until': _until, ...data } = stage.data();
    putSecret(data);
  };

  beforeEach(() => {
    stage = new CertificateStage();
  });
  afterEach(() => stage.close());

  describe('of a new installation', () => {
    beforeEach(async () => {
      stage.replica({ leads: true });
      stage.replica();
      await settle();
    });

    it('end with an unguessable segment, and every replica answers them', () => {
      assert.match(segment(), /^[0-9a-f]{32}$/);
      assertConfigured();
      assert.deepEqual(routes(`/one/${segment()}`), ['/one', '/one']);
    });

    it('are not answered without it, with another segment, or with more segments', () => {
      const wrong = segment().replace(/^./, (first) => (first === '0' ? '1' : '0'));
      const long = `${segment()}0`;
      for (const path of ['/one', '/one/', `/one/${wrong}`, `/one/${long}`, `/one/${segment()}/`, `/${segment()}`, ''])
        assert.deepEqual(routes(path), [undefined, undefined], path);
    });

    it('are answered without it while a configuration uses a url, which is not changed', async () => {
      const url = 'https://127.0.0.1:9443/one';
      stage.cluster.put(validatingWebhookConfigurations, {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: 'a' },
        webhooks: [{ name: 'one', clientConfig: { url } }],
      });
      await settle();
      const [webhook] = own(stage.cluster.find(validatingWebhookConfigurations, { name: 'a' }), 'webhooks') as object[];
      assert.equal(own(own(webhook, 'clientConfig'), 'url'), url);
      assert.ok(own(own(webhook, 'clientConfig'), 'caBundle'));
      assert.deepEqual(routes('/one'), ['/one', '/one']);
      stage.putConfiguration(validatingWebhookConfigurations, 'a');
      assert.deepEqual(routes('/one'), [undefined, undefined]);
    });

    it('get it back after its removal, and are not answered without it meanwhile', async () => {
      stage.putConfiguration(validatingWebhookConfigurations, 'a');
      assert.deepEqual(routes('/one'), [undefined, undefined]);
      await settle();
      assertConfigured();
    });

    it('get a new one after its key is deleted, without an unanswered call', async () => {
      const before = segment();
      stage.cluster.fault = () => assert.ok(allAnswered());
      forget();
      await settle();
      assert.notEqual(segment(), before);
      await settle(9_000);
      assert.deepEqual(
        stage.configuredPaths(),
        [`/one/${before}`, `/two/${before}`],
        'replicas may not have heard yet',
      );
      await settle(2_000);
      assertConfigured();
      await settle(8_000);
      assert.deepEqual(routes(`/one/${before}`), ['/one', '/one'], 'an API server may not have heard yet');
      assert.deepEqual(routes('/one'), [undefined, undefined]);
      await settle(2_000);
      assert.deepEqual(routes(`/one/${before}`), [undefined, undefined]);
    });

    it('are answered by a replica that starts during that change', async () => {
      const before = segment();
      stage.cluster.fault = ({ verb, plural }) => {
        if (verb === 'patch' && plural !== 'secrets') throw new Error('not now');
      };
      forget();
      await settle();
      stage.replica();
      await settle(60_000);
      assert.notEqual(segment(), before);
      assert.deepEqual(routes(`/one/${before}`), ['/one', '/one', '/one']);
    });

    it('keep it after the Secret is deleted, until there is another', async () => {
      const before = segment();
      stage.cluster.drop(secrets, secret);
      assert.deepEqual(routes(`/one/${before}`), ['/one', '/one']);
      await settle();
      assert.notEqual(segment(), before);
      assert.ok(allAnswered());
    });
  });

  describe('after an upgrade from a version without segments', () => {
    beforeEach(async () => {
      const { stop } = stage.replica({ leads: true });
      await settle();
      await stop();
      stage.putConfigurations(Buffer.from(stage.data()['ca.crt'] ?? '').toString('base64'));
      stage.paths.length = 0;
      forget();
    });

    it('are answered unchanged while a replica of that version leads', async () => {
      stage.replica();
      await settle(30 * minutes);
      assert.deepEqual(routes('/one'), ['/one']);
      assert.deepEqual(routes('/one/anything'), [undefined]);
    });

    it('stay unchanged for ten minutes, in which replicas of that version may still run, and are always answered', async () => {
      stage.cluster.fault = () => assert.ok(allAnswered());
      stage.replica({ leads: true });
      stage.replica();
      await settle();
      assert.match(segment(), /^[0-9a-f]{32}$/);
      await settle(10 * minutes - 2_000);
      assert.deepEqual(stage.configuredPaths(), ['/one', '/two']);
      assert.ok(allAnswered());
      await settle(3_000);
      assertConfigured();
      assert.deepEqual(routes('/one'), ['/one', '/one'], 'an API server may not have heard yet');
      await settle(10_000);
      assert.deepEqual(routes('/one'), [undefined, undefined]);
      assert.ok(allAnswered());
    });

    it('are answered without a segment for at most fifteen minutes, whatever the configurations contain', async () => {
      stage.replica({ leads: true });
      await settle();
      stage.cluster.fault = () => {
        throw new Error('no');
      };
      await settle(15 * minutes - 2_000);
      assert.deepEqual(routes('/one'), ['/one']);
      await settle(3_000);
      assert.deepEqual(routes('/one'), [undefined]);
    });

    it('are changed by the next leader without another wait', async () => {
      const { stop } = stage.replica({ leads: true });
      await settle(6 * minutes);
      await stop();
      stage.replica({ leads: true });
      await settle(4 * minutes + 1_000);
      assertConfigured();
    });
  });

  it('are not answered at all by a replica that has not read the Secret', () => {
    stage.replica();
    assert.deepEqual(routes('/one'), [undefined]);
  });

  it('get a new segment if another client wrote one', async () => {
    stage.replica({ leads: true });
    await settle();
    putSecret({ ...stage.data(), 'path-segment': 'short' });
    await settle();
    assert.match(segment(), /^[0-9a-f]{32}$/);
  });
});
