import assert from 'node:assert/strict';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mutatingWebhookConfigurations, secrets } from '../../../src/api/resources.ts';
import { newSignedPair, toData } from '../../../src/certificates/material.ts';
import { OwnCertificate } from '../../../src/certificates/own-certificate.ts';
import { loadMs, propagationMs } from '../../../src/certificates/rotation.ts';
import { madeByServerLabel, openCertificateStores } from '../../../src/certificates/stores.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { noLog } from '../../../src/observe/log.ts';
import { unlisted } from '../../support/binding/stores.ts';
import { MemoryCluster } from '../access/lifecycle/memory-cluster.ts';
import { CertificateStage, days, pems, secret } from './stage.ts';

const ours = { [madeByServerLabel]: 'true' };

describe('the certificate that the server creates itself', () => {
  let stage: CertificateStage;
  const settle = (ms = 100): Promise<void> => stage.clock.advance(ms);

  /** Starts the leader. */
  const lead = async (options: Parameters<CertificateStage['replica']>[0] = {}) => {
    const leader = stage.replica({ leads: true, ...options });
    await settle();
    return leader;
  };
  const dropSecret = async (): Promise<void> => {
    stage.cluster.drop(secrets, secret);
    await settle();
  };

  beforeEach(() => {
    stage = new CertificateStage();
  });
  afterEach(() => stage.close());

  describe('at first', () => {
    it('is created by the leader, served by all replicas, and trusted by every webhook', async () => {
      const follower = stage.replica();
      const [before] = stage.serials();
      assert.match(follower.certificate.problem() ?? '', /^Secret ns\/pair: it does not exist yet;/);
      await lead();
      const [left, right] = stage.serials();
      assert.equal(left, right);
      assert.notEqual(left, before);
      assert.deepEqual(stage.untrusted(), []);
      assert.deepEqual(Object.keys(stage.data()).sort(), ['ca.crt', 'tls.crt', 'tls.key']);
      assert.deepEqual(stage.problems(), [undefined, undefined]);
      const stored = stage.cluster.find(secrets, secret);
      assert.deepEqual([stored?.['type'], stored?.metadata.labels?.[madeByServerLabel]], ['kubernetes.io/tls', 'true']);
    });

    it('has the requested names, for 90 days', async () => {
      const { certificate } = await lead({ names: ['svc.ns.svc', '127.0.0.1'] });
      const leaf = new X509Certificate(certificate.current.cert);
      assert.equal(leaf.checkHost('svc.ns.svc'), 'svc.ns.svc');
      assert.equal(leaf.checkIP('127.0.0.1'), '127.0.0.1');
      const left = certificate.current.expiresAtMs - stage.clock.now();
      assert.ok(left > 90 * days - 2000 && left <= 90 * days);
    });

    it('is created once by two concurrent leaders: the second adopts the certificate of the first', async () => {
      stage.replica({ leads: true });
      await lead();
      assert.equal(stage.writes().filter((write) => write === 'create secrets').length, 2, 'there was a race');
      assert.equal(new Set(stage.serials()).size, 1);
      assert.deepEqual(stage.untrusted(), []);
    });

    it('keeps a replica from being ready until it is trusted', async () => {
      stage.cluster.fault = ({ plural }) => {
        if (plural === mutatingWebhookConfigurations.plural) throw new ApiError(403, 'Forbidden', 'may not patch');
      };
      const { certificate } = await lead();
      const problem = 'caBundle does not contain the authority of the serving certificate yet: a, b';
      assert.equal(certificate.problem(), problem);
      stage.cluster.fault = () => {};
      await settle(60_000);
      assert.equal(certificate.problem(), undefined);
    });

    it('keeps no follower from being ready once a webhook trusts it, because only the leader writes the others', async () => {
      const follower = stage.replica();
      stage.cluster.fault = ({ verb, name }) => {
        if (verb === 'patch' && name === 'b') throw new ApiError(403, 'Forbidden', 'may not patch');
      };
      const leader = await lead();
      assert.equal(follower.certificate.problem(), undefined);
      assert.match(leader.certificate.problem() ?? '', /yet: b, b$/);
    });

    it('is stored only in the Secret', async () => {
      await lead();
      stage.putSecret({ labels: ours, data: { ...stage.data(), 'tls.crt': 'bm9uZQ==' } });
      await settle();
      const key = stage.data()['tls.key'] ?? '';
      assert.match(key, /PRIVATE KEY/);
      const logged = JSON.stringify(stage.lines);
      assert.ok(logged.includes('serving certificate created'));
      assert.ok(!logged.includes('PRIVATE') && !logged.includes(key.split('\n')[1] ?? key));
    });
  });

  it('comes from authorities whose private keys are not stored', async () => {
    await lead();
    // Checks during a rotation, when the Secret has the most entries.
    await dropSecret();
    const data = stage.data();
    assert.ok(data['next-tls.key']);
    const authorities = new Set(stage.bundles().flatMap(pems));
    assert.equal(authorities.size, 2);
    const text = [...Object.values(data), JSON.stringify(stage.lines)].join('\n').replaceAll('\\n', '\n');
    const keys = text.match(/-----BEGIN (?:EC )?PRIVATE KEY-----[\s\S]*?-----END (?:EC )?PRIVATE KEY-----/g) ?? [];
    assert.equal(keys.length, 2);
    for (const authority of authorities) {
      const { publicKey } = new X509Certificate(authority);
      assert.ok(keys.every((key) => !createPublicKey(key).equals(publicKey)));
    }
  });

  describe('in the long run', () => {
    beforeEach(async () => {
      stage.replica({ leads: true });
      stage.replica();
      await settle();
    });

    it('is renewed after 60 of its 90 days, and never served while it is not trusted', async function () {
      this.timeout(20_000);
      const seen = new Set<string>();
      stage.cluster.fault = () => {
        // Between any two calls.
        assert.deepEqual(stage.untrusted(), []);
        assert.equal(new Set(stage.serials()).size, 1);
      };
      for (let day = 0; day < 130; day++) {
        await stage.clock.advance(days);
        for (const serial of stage.serials()) seen.add(serial);
        assert.deepEqual(stage.untrusted(), []);
        assert.equal(seen.size, day < 59 ? 1 : day < 119 ? 2 : 3, `day ${day}`);
        for (const { current } of stage.replicas) assert.ok(current.expiresAtMs - stage.clock.now() > 29 * days);
      }
      assert.deepEqual(Object.keys(stage.data()).sort(), ['ca.crt', 'tls.crt', 'tls.key']);
      const [bundle = '', ...others] = new Set(stage.bundles());
      assert.deepEqual([pems(bundle).length, others], [1, []]);
    });

    it('has a successor that is trusted for ten seconds before it is served, and stays trusted for five more minutes', async () => {
      const [before] = stage.serials();
      const first = stage.data()['ca.crt'];
      const { startsAtMs = 0, expiresAtMs = 0 } = stage.replicas[0]?.current ?? {};
      const dueMs = startsAtMs + (2 / 3) * (expiresAtMs - startsAtMs) - stage.clock.now();
      await stage.clock.advance(dueMs - 60_000);
      assert.deepEqual(stage.bundles()[0], first);
      while (pems(stage.bundles()[0] ?? '').length === 1) await stage.clock.advance(1000);
      assert.equal(stage.serials()[0], before);
      await stage.clock.advance(propagationMs - 2000);
      assert.equal(stage.serials()[0], before);
      await stage.clock.advance(3000);
      assert.notEqual(stage.serials()[0], before);
      assert.equal(stage.data()['previous-ca.crt'], first);
      await stage.clock.advance(loadMs - 5000);
      for (const bundle of stage.bundles()) assert.ok(bundle.includes(first ?? 'none'));
      await stage.clock.advance(10_000);
      for (const bundle of stage.bundles()) assert.equal(bundle, stage.data()['ca.crt']);
    });

    it('costs no write while nothing changes', async () => {
      await stage.clock.advance(loadMs);
      const before = stage.writes().length;
      await stage.clock.advance(7 * days);
      assert.deepEqual(stage.writes().slice(before), []);
    });

    it('stays in use while the server cannot write its successor into a caBundle', async () => {
      const [before] = stage.serials();
      stage.cluster.fault = ({ plural, name }) => {
        if (plural === mutatingWebhookConfigurations.plural && name === 'b') throw new ApiError(403, 'Forbidden', 'no');
      };
      await stage.clock.advance(60 * days);
      assert.equal(stage.serials()[0], before);
      assert.deepEqual(stage.untrusted(), []);
      assert.equal(stage.replicas[0]?.problem(), undefined);
      stage.cluster.fault = () => {};
      await stage.clock.advance(60_000);
      assert.notEqual(stage.serials()[0], before);
      assert.deepEqual(stage.untrusted(), []);
    });

    it('makes the replica unready once it has expired', () => {
      const expiresAtMs = stage.replicas[1]?.current.expiresAtMs ?? 0;
      stage.clock.setWall(expiresAtMs - 1);
      assert.equal(stage.replicas[1]?.problem(), undefined);
      stage.clock.setWall(expiresAtMs);
      assert.match(stage.replicas[1]?.problem() ?? '', /^the serving certificate expired at 2027-/);
    });

    it('is written again into an emptied caBundle, and into no other', async () => {
      assert.equal(stage.replicas[0]?.problem(), undefined);
      const before = stage.writes().length;
      stage.putConfiguration(mutatingWebhookConfigurations, 'b');
      assert.deepEqual(stage.untrusted(), [0, 1]);
      assert.equal(stage.replicas[0]?.problem(), undefined, 'the webhooks of the others go on');
      await settle();
      assert.deepEqual(stage.untrusted(), []);
      assert.deepEqual(stage.writes().slice(before), ['patch mutatingwebhookconfigurations']);
    });

    it('is not ready while no caBundle contains it', async () => {
      stage.cluster.fault = () => {
        throw new ApiError(403, 'Forbidden', 'no');
      };
      stage.putConfigurations('bm9uZQ==');
      assert.match(stage.replicas[1]?.problem() ?? '', /^caBundle does not contain/);
    });

    it('waits again if a caBundle is emptied during a rotation', async () => {
      const [before] = stage.serials();
      stage.cluster.drop(secrets, secret);
      await stage.clock.advance(propagationMs - 1000);
      stage.putConfiguration(mutatingWebhookConfigurations, 'b');
      await stage.clock.advance(propagationMs - 1000);
      assert.equal(stage.serials()[0], before);
      await stage.clock.advance(2000);
      assert.notEqual(stage.serials()[0], before);
    });
  });

  it('lets a new replica be ready in an upgrade whose new webhook configuration the earlier leader does not know', async () => {
    const earlier = await lead({ configurations: ['a'] });
    const upgraded = stage.replica();
    await stage.clock.advance(60_000);
    assert.deepEqual(stage.untrusted(), [0, 1], 'nobody writes the new configuration');
    assert.equal(upgraded.certificate.problem(), undefined);

    await earlier.stop();
    upgraded.lead();
    assert.equal(upgraded.certificate.problem(), undefined, 'it stays ready as the leader');
    await settle();
    assert.deepEqual(stage.untrusted(), []);
    assert.equal(upgraded.certificate.problem(), undefined);
  });

  describe('in an upgrade from a certificate from files', () => {
    const { authority } = newSignedPair(['svc.ns.svc'], 0);
    const configureFiles = (): void => stage.putConfigurations(Buffer.from(authority).toString('base64'));
    const isEarlierServed = (): boolean =>
      stage.bundles().every((bundle) => bundle.includes(authority.trim())) &&
      stage.configuredPaths().join() === '/one,/two';

    for (const [what, arrange] of [
      ['for the first time', () => Promise.resolve()],
      [
        'with a Secret from an earlier time',
        async () => {
          const earlier = await lead();
          await earlier.stop();
          stage.replicas.length = 0;
        },
      ],
    ] as const) {
      it(`lets API servers call the replicas of before for five minutes, ${what}`, async () => {
        await arrange();
        configureFiles();
        stage.cluster.fault = () => assert.ok(isEarlierServed(), 'before each write');
        const upgraded = await lead();
        assert.equal(upgraded.certificate.problem(), undefined);
        assert.deepEqual(stage.untrusted(), []);
        await stage.clock.advance(loadMs - 1_000);
        assert.ok(isEarlierServed());
        stage.cluster.fault = () => undefined;
        await stage.clock.advance(2_000);
        assert.ok(stage.bundles().every((bundle) => pems(bundle).length === 1 && !bundle.includes(authority.trim())));
        assert.deepEqual(stage.untrusted(), []);
      });
    }

    it('trusts no other authority once its own was in a webhook', async () => {
      await lead();
      stage.putConfiguration(undefined, 'a', Buffer.from(authority).toString('base64'));
      await settle();
      assert.ok(stage.bundles().every((bundle) => !bundle.includes(authority.trim())));
    });
  });

  describe('with a changed Secret', () => {
    it('is replaced without an outage if the Secret is deleted', async () => {
      stage.replica({ leads: true });
      stage.replica();
      await settle();
      const [before] = stage.serials();
      stage.cluster.fault = () => assert.deepEqual(stage.untrusted(), []);
      await dropSecret();
      assert.deepEqual(stage.serials(), [before, before]);
      await stage.clock.advance(propagationMs + 1000);
      assert.equal(new Set([...stage.serials(), before]).size, 2);
      assert.deepEqual(stage.untrusted(), []);
    });

    const unusable: [string, () => Record<string, string | null>][] = [
      ['no data', () => ({})],
      ['garbage', () => ({ 'tls.crt': 'bm9uZQ==', 'tls.key': 'bm9uZQ==', 'ca.crt': 'bm9uZQ==' })],
      ['another key', () => ({ ...fresh(), 'tls.key': fresh()['tls.key'] ?? '' })],
      ['another authority', () => ({ ...fresh(), 'ca.crt': fresh()['ca.crt'] ?? '' })],
    ];
    for (const [title, data] of unusable) {
      it(`is created again at the start if the server’s Secret has ${title}`, async () => {
        stage.putSecret({ labels: ours, data: data() });
        const { certificate } = await lead();
        assert.equal(certificate.problem(), undefined);
        assert.deepEqual(stage.untrusted(), []);
      });
    }

    it('does not change a Secret that another client created, readable or not, and reports it', async () => {
      for (const data of [fresh(), { 'tls.crt': 'bm9uZQ==' }, undefined]) {
        stage.putSecret(data ? { data } : {});
        const before = stage.cluster.find(secrets, secret);
        const { certificate, stop } = stage.replica({ leads: true });
        await stage.clock.advance(3600_000);
        assert.deepEqual(stage.cluster.find(secrets, secret), before);
        assert.match(certificate.problem() ?? '', /^Secret ns\/pair: the server did not create it .* is missing/);
        assert.deepEqual(new Set(stage.writes()), new Set());
        await stop();
      }
      stage.cluster.drop(secrets, secret);
      const { certificate } = await lead();
      assert.equal(certificate.problem(), undefined);
    });

    it('gets a successor if the required names have changed', async () => {
      const first = await lead();
      await first.stop();
      stage.replica({ leads: true, names: ['svc.ns.svc', 'localhost'] });
      await stage.clock.advance(propagationMs + 1000);
      const serving = new X509Certificate(stage.replicas[1]?.current.cert ?? '');
      assert.equal(serving.checkHost('localhost'), 'localhost');
      assert.deepEqual(stage.untrusted(), []);
    });

    it('is rotated to the end by the next leader if a leader stops during the rotation', async () => {
      const first = await lead();
      const [before] = stage.serials();
      await dropSecret();
      await first.stop();
      await stage.clock.advance(60_000);
      assert.equal(stage.serials()[0], before);
      stage.replica({ leads: true });
      assert.equal(stage.serials()[1], before, 'a replica that starts now serves what is trusted');
      await stage.clock.advance(propagationMs + 1000);
      assert.equal(new Set([...stage.serials(), before]).size, 2);
      assert.deepEqual(stage.untrusted(), []);
    });

    it('stays in use if the server cannot load the new one', async () => {
      const { certificate } = await lead();
      const [before] = stage.serials();
      certificate.start((pair) => {
        if (pair !== certificate.current) throw new Error('no such curve');
      });
      stage.cluster.drop(secrets, secret);
      await stage.clock.advance(propagationMs + 1000);
      assert.equal(stage.serials()[0], before);
      assert.ok(JSON.stringify(stage.lines).includes('no such curve'));
    });
  });

  it('reports that its Secret cannot be read', () => {
    const unsynced = new MemoryCluster(stage.clock);
    unsynced.watch = (spec) => unlisted(spec, stage.clock);
    const stores = openCertificateStores(unsynced, secret, { webhooks: ['a'], apiServices: [] });
    const { clock } = stage;
    const certificate = new OwnCertificate({ stores, secret, names: ['a'], leads: () => false, clock, log: noLog });
    assert.equal(certificate.problem(), 'Secret ns/pair could not be read yet; see the log');
  });

  const fresh = (): Record<string, string | null> => toData(newSignedPair(['svc.ns.svc'], stage.clock.now()));
});
