import assert from 'node:assert/strict';
import { KeySecret, type KeySecretOptions, readKey } from '../../../../src/access/signing/key-secret.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { configMaps, secrets } from '../../../../src/api/resources.ts';
import { DerivedKeyPair } from '../../../../src/kit/ed25519.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { type Log, noLog } from '../../../../src/observe/log.ts';
import { keyOf } from '../../../support/key-of.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { MemoryCluster } from '../lifecycle/memory-cluster.ts';

const namespace = 'drawbridge-system';
const name = { namespace, name: 'drawbridge-audit-keys' };

const secretOf = (data: unknown): KubeObject => ({ apiVersion: 'v1', kind: 'Secret', metadata: name, data });
const text = (seed: string): string => Buffer.from(keyOf(seed)).toString('base64');

describe('the Secret of the signing keys', () => {
  const clock = new SimulatedClock();
  let cluster: MemoryCluster;
  let lines: unknown[];
  let stop: AbortController;
  const options = { ...name, purpose: 'test', adopt: false, rereadMs: 30_000 };
  const open = (more: Partial<KeySecretOptions> = {}): KeySecret => {
    const line = (...parts: unknown[]): number => lines.push(parts);
    const log: Log = { ...noLog, error: line, warn: line, info: line, debug: line };
    const keys = new KeySecret({ ...options, client: cluster.client, clock, log, ...more });
    void keys.start(stop.signal);
    return keys;
  };
  /** Ends all replicas and starts one. */
  const restart = async (more: Partial<KeySecretOptions> = {}): Promise<KeySecret> => {
    stop.abort();
    stop = new AbortController();
    const keys = open(more);
    await clock.advance(10);
    return keys;
  };
  const publicKeyOf = (key: Uint8Array | undefined): string =>
    new DerivedKeyPair(key ?? new Uint8Array(), options.purpose).publicKey.toString('base64url');
  const listed = (): unknown => cluster.find(configMaps, name)?.['data'];

  beforeEach(() => {
    cluster = new MemoryCluster(clock);
    lines = [];
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  it('is created if it is missing, with a key of 32 bytes', async () => {
    const keys = open();
    assert.match(keys.problem() ?? '', /drawbridge-audit-keys: not read yet/);
    await clock.advance(10);
    assert.equal(keys.problem(), undefined);
    assert.equal(keys.key?.length, 32);
    assert.equal(cluster.find(secrets, name)?.['type'], 'Opaque');
    assert.deepEqual(listed(), { [publicKeyOf(keys.key)]: 'current' });
  });

  it('is shared by replicas that start together: the second reads the Secret of the first', async () => {
    const both = [open(), open(), open()];
    await clock.advance(10);
    const [first, ...rest] = both.map(({ key }) => key);
    assert.ok(first);
    for (const key of rest) assert.deepEqual(key, first);
    assert.deepEqual(readKey(cluster.find(secrets, name) as KubeObject), first);
    assert.ok(cluster.calls.filter(({ verb }) => verb === 'create').length > 1, 'there was a race');
  });

  it('is read again every 30 s, and on request', async () => {
    cluster.put(secrets, secretOf({ current: text('one') }));
    const keys = open({ adopt: true });
    await clock.advance(10);
    assert.deepEqual(keys.key, keyOf('one'));
    cluster.put(secrets, secretOf({ current: text('two') }));
    await clock.advance(30_000);
    assert.deepEqual(keys.key, keyOf('two'));
    cluster.put(secrets, secretOf({ current: text('three') }));
    await keys.refresh();
    assert.deepEqual(keys.key, keyOf('three'));
  });

  it('keeps its keys in use if it is deleted or corrupted while a replica runs, and creates no others', async () => {
    cluster.put(secrets, secretOf({ current: text('one') }));
    const keys = open({ adopt: true });
    await clock.advance(10);
    cluster.put(secrets, secretOf({ current: 'c2hvcnQ=' }));
    await clock.advance(30_000);
    cluster.drop(secrets, name);
    await clock.advance(30_000);
    assert.deepEqual(keys.key, keyOf('one'));
    assert.equal(cluster.find(secrets, name), undefined);
    const logged = lines
      .map((line) => JSON.stringify(line))
      .filter((line) => line.includes('this replica continues to use the key'));
    assert.equal(logged.length, 2);
  });

  it('resolves after its first attempt, even if that fails', async () => {
    cluster.fault = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'etcd is away');
    };
    const keys = new KeySecret({ ...options, client: cluster.client, clock, log: noLog });
    const started = keys.start(stop.signal);
    await clock.advance(10);
    await started;
    assert.match(keys.problem() ?? '', /etcd is away/);
  });

  it('is retried every second while the API does not answer, and reports why there are no keys', async () => {
    let faults = 2;
    cluster.fault = () => {
      if (faults-- > 0) throw new ApiError(503, 'ServiceUnavailable', 'etcd is away');
    };
    const keys = open();
    await clock.advance(10);
    assert.match(keys.problem() ?? '', /etcd is away/);
    await clock.advance(2000);
    assert.equal(keys.problem(), undefined);
  });

  for (const data of [undefined, null, [], {}, { current: 7 }, { current: '' }, { current: 'c2hvcnQ=' }]) {
    it(`with the data ${JSON.stringify(data)} has no keys, and is not changed`, async () => {
      const before = cluster.put(secrets, secretOf(data));
      const keys = open();
      await clock.advance(3000);
      assert.equal(keys.key, undefined);
      assert.match(keys.problem() ?? '', /data\.current must be at least 32 random bytes/);
      assert.deepEqual(cluster.find(secrets, name), before);
    });
  }

  it('never appears in the log', async () => {
    cluster.put(secrets, secretOf({ current: text('one') }));
    open({ adopt: true });
    await clock.advance(10);
    cluster.put(secrets, secretOf({ current: 'c2hvcnQ=' }));
    await clock.advance(60_000);
    assert.ok(lines.length > 0);
    const logged = JSON.stringify(lines);
    for (const secret of [text('one'), 'c2hvcnQ=']) assert.equal(logged.includes(secret), false);
  });

  describe('from before the first start', () => {
    beforeEach(() => cluster.put(secrets, secretOf({ current: text('mallory') })));

    it('is not used and not changed, and the problem names the remedy', async () => {
      const before = cluster.find(secrets, name);
      const keys = open();
      await clock.advance(60_000);
      assert.equal(keys.key, undefined);
      assert.match(
        keys.problem() ?? '',
        /nothing proves.*--adopt-signing-keys=true.*restore the earlier Secret.*delete the Secret/,
      );
      assert.deepEqual(cluster.find(secrets, name), before);
      assert.equal(listed(), undefined);
      assert.equal(lines.length, 1, 'it is logged once');
    });

    it('is used once it is adopted, and later without another adoption', async () => {
      open({ adopt: true });
      await clock.advance(10);
      assert.deepEqual(listed(), { [publicKeyOf(keyOf('mallory'))]: 'current' });
      assert.deepEqual((await restart()).key, keyOf('mallory'));
    });

    it('is created again after a deletion', async () => {
      const keys = open();
      await clock.advance(10);
      cluster.drop(secrets, name);
      await clock.advance(1000);
      assert.ok(keys.key);
      assert.notDeepEqual(keys.key, keyOf('mallory'));
    });
  });

  describe('that the server created', () => {
    let made: Uint8Array | undefined;
    beforeEach(async () => {
      made = open().key;
      await clock.advance(10);
      made = readKey(cluster.find(secrets, name) as KubeObject);
    });
    const replace = (data: unknown): void => {
      cluster.drop(secrets, name);
      cluster.put(secrets, secretOf(data));
    };
    const texts = () => cluster.find(secrets, name)?.['data'] as { current: string };

    it('is used after a restart', async () => assert.deepEqual((await restart()).key, made));

    it('is used after a rotation, even while no replica ran, and the old key is no longer listed', async () => {
      stop.abort();
      cluster.put(secrets, secretOf({ current: text('next') }));
      assert.deepEqual((await restart()).key, keyOf('next'));
      assert.deepEqual(listed(), { [publicKeyOf(keyOf('next'))]: 'current' });
    });

    it('is used after it was restored as another object with the same keys', async () => {
      stop.abort();
      replace(texts());
      assert.deepEqual((await restart()).key, made);
    });

    it('is not used if it was replaced while no replica ran', async () => {
      stop.abort();
      replace({ current: text('mallory') });
      assert.equal((await restart()).key, undefined);
    });

    it('stays in use if it is replaced while a replica runs', async () => {
      const keys = await restart();
      replace({ current: text('mallory') });
      await clock.advance(60_000);
      await keys.refresh();
      assert.deepEqual(keys.key, made);
      assert.equal(keys.problem(), undefined);
    });

    it('has its list corrected after a client added to it', async () => {
      const right = listed();
      const list = cluster.find(configMaps, name) as KubeObject;
      cluster.put(configMaps, { ...list, data: { [publicKeyOf(keyOf('mallory'))]: 'current' } });
      await clock.advance(30_000);
      assert.deepEqual(listed(), right);
    });
  });

  it('is created again by the next replica if one ended between listing its keys and storing them', async () => {
    cluster.fail('create', 'secrets');
    open();
    await clock.advance(10);
    assert.ok(listed());
    cluster.fault = () => {};
    const { key } = await restart();
    assert.deepEqual(listed(), { [publicKeyOf(key)]: 'current' });
  });

  it('generates its keys once while the Secret cannot be stored, so that the list does not grow', async () => {
    cluster.fail('create', 'secrets', { error: new ApiError(403, 'Forbidden', 'exceeded quota') });
    const keys = open();
    await clock.advance(10_000);
    assert.match(keys.problem() ?? '', /exceeded quota/);
    assert.equal(Object.keys(listed() as object).length, 1);
    assert.equal(lines.length, 1, 'it is logged once');
  });

  it('is used by the next replica if one ended between storing its keys and recording that', async () => {
    let stored = false;
    cluster.fault = ({ verb, plural }) => {
      if (stored) throw new ApiError(503, 'ServiceUnavailable', 'killed');
      stored = verb === 'create' && plural === 'secrets';
    };
    open();
    await clock.advance(10);
    cluster.fault = () => {};
    const { key } = await restart();
    assert.deepEqual(key, readKey(cluster.find(secrets, name) as KubeObject));
  });
});
