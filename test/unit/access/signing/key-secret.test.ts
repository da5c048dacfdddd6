import assert from 'node:assert/strict';
import { KeySecret, keySecretName, readKeys } from '../../../../src/access/signing/key-secret.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { secrets } from '../../../../src/api/resources.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { type Log, noLog } from '../../../../src/observe/log.ts';
import { keyOf } from '../../../support/signers.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { MemoryCluster } from '../life/memory-cluster.ts';

const namespace = 'drawbridge-system';
const name = { namespace, name: keySecretName };

const secretOf = (data: unknown): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: name,
  data,
});
const text = (seed: string): string => Buffer.from(keyOf(seed)).toString('base64');

describe('the Secret of the signing keys', () => {
  const clock = new SimulatedClock();
  let cluster: MemoryCluster;
  let lines: unknown[];
  let stop: AbortController;
  const open = (): KeySecret => {
    const line = (...parts: unknown[]): number => lines.push(parts);
    const log: Log = { ...noLog, error: line, warn: line, info: line, debug: line };
    const keys = new KeySecret({ client: cluster.client, namespace, clock, log });
    void keys.start(stop.signal);
    return keys;
  };

  beforeEach(() => {
    cluster = new MemoryCluster(clock);
    lines = [];
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  it('is made when there is none, with two keys of 32 bytes', async () => {
    const keys = open();
    assert.match(keys.problem() ?? '', /drawbridge-signing-keys: not read yet/);
    await clock.advance(10);
    assert.equal(keys.problem(), undefined);
    assert.deepEqual([keys.keys?.current.length, keys.keys?.previous?.length], [32, 32]);
    assert.notDeepEqual(keys.keys?.current, keys.keys?.previous);
    assert.equal(cluster.find(secrets, name)?.['type'], 'Opaque');
  });

  it('is shared by replicas that start together: who comes second reads what the first has made', async () => {
    const both = [open(), open(), open()];
    await clock.advance(10);
    const [first, ...rest] = both.map(({ keys }) => keys);
    assert.ok(first);
    for (const keys of rest) assert.deepEqual(keys, first);
    assert.deepEqual(readKeys(cluster.find(secrets, name) as KubeObject), first);
    assert.ok(cluster.calls.filter(({ verb }) => verb === 'create').length > 1, 'there was a race');
  });

  it('is read again every 30 s, and when somebody asks', async () => {
    cluster.put(secrets, secretOf({ current: text('one') }));
    const keys = open();
    await clock.advance(10);
    assert.deepEqual(keys.keys, { current: keyOf('one') });
    cluster.put(secrets, secretOf({ current: text('two'), previous: text('one') }));
    await clock.advance(30_000);
    assert.deepEqual(keys.keys, { current: keyOf('two'), previous: keyOf('one') });
    cluster.put(secrets, secretOf({ current: text('three') }));
    await keys.refresh();
    assert.deepEqual(keys.keys, { current: keyOf('three') });
  });

  it('leaves the keys in use when it is gone or spoilt while we run, and makes no others', async () => {
    cluster.put(secrets, secretOf({ current: text('one') }));
    const keys = open();
    await clock.advance(10);
    cluster.put(secrets, secretOf({ current: 'c2hvcnQ=' }));
    await clock.advance(30_000);
    cluster.drop(secrets, name);
    await clock.advance(30_000);
    assert.deepEqual(keys.keys, { current: keyOf('one') });
    assert.equal(cluster.find(secrets, name), undefined);
    assert.equal(lines.length, 2);
  });

  it('lets its first attempt be waited for, whatever comes of it', async () => {
    cluster.fault = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'etcd is away');
    };
    const keys = new KeySecret({ client: cluster.client, namespace, clock, log: noLog });
    const started = keys.start(stop.signal);
    await clock.advance(10);
    await started;
    assert.match(keys.problem() ?? '', /etcd is away/);
  });

  it('is tried every second while the API does not answer, and says why there are no keys', async () => {
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
    it(`with the data ${JSON.stringify(data)} holds no keys, and is left as it is`, async () => {
      const before = cluster.put(secrets, secretOf(data));
      const keys = open();
      await clock.advance(3000);
      assert.equal(keys.keys, undefined);
      assert.match(keys.problem() ?? '', /data\.current must be at least 32 random bytes/);
      assert.deepEqual(cluster.find(secrets, name), before);
    });
  }

  it('never shows in the log', async () => {
    cluster.put(secrets, secretOf({ current: text('one'), previous: 'c2hvcnQ=' }));
    open();
    await clock.advance(10);
    cluster.put(secrets, secretOf({ current: 'c2hvcnQ=' }));
    await clock.advance(60_000);
    assert.ok(lines.length > 0);
    const told = JSON.stringify(lines);
    for (const secret of [text('one'), 'c2hvcnQ=']) assert.equal(told.includes(secret), false);
  });
});
