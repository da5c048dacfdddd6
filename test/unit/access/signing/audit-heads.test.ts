import assert from 'node:assert/strict';
import { AuditHeads, maxHeads } from '../../../../src/access/signing/audit-heads.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import { HeadSigner, headNames, isSigned, readHeads, type SignedHead } from '../../../../src/audit/head.ts';
import { formatMicroTime } from '../../../../src/kit/clock.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { keyOf } from '../../../support/key-of.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { MemoryCluster } from '../lifecycle/memory-cluster.ts';

const name = { namespace: 'drawbridge-system', name: headNames.access.heads };
const publicKey = (seed: string): string => new HeadSigner(keyOf(seed)).publicKey;
const chainOf = (number: number): string => number.toString(16).padStart(24, '0');

class Replica {
  head = { chain: '', seq: 0, hash: '' };
  key: Uint8Array | undefined = keyOf('one');
  unsigned = 0;
  readonly problems: string[] = [];
  readonly heads: AuditHeads;

  constructor(cluster: MemoryCluster, clock: SimulatedClock, number: number) {
    this.head = { ...this.head, chain: chainOf(number) };
    const problem = (message: string): number => this.problems.push(message);
    this.heads = new AuditHeads({
      client: cluster.client,
      ...name,
      replica: `drawbridge-${number}`,
      journal: this,
      keys: this,
      clock,
      log: { ...noLog, warn: problem, error: problem },
      onUnsigned: (lines) => {
        this.unsigned = lines;
      },
    });
  }

  write(lines = 1): void {
    const seq = this.head.seq + lines;
    this.head = { ...this.head, seq, hash: seq.toString(16).padStart(64, '0') };
  }
}

describe('the published audit heads', () => {
  let clock: SimulatedClock;
  let cluster: MemoryCluster;
  let replica: Replica;
  const opened: Replica[] = [];
  const open = (number: number): Replica => {
    const one = new Replica(cluster, clock, number);
    opened.push(one);
    one.heads.start();
    return one;
  };
  const published = (): readonly SignedHead[] => readHeads(cluster.find(configMaps, name)).heads;
  const ofChain = (number: number): SignedHead | undefined =>
    published().find(({ chain }) => chain === chainOf(number));

  beforeEach(async () => {
    clock = new SimulatedClock();
    cluster = new MemoryCluster(clock);
    replica = open(1);
    await clock.advance(10);
  });
  afterEach(async () => {
    cluster.fault = () => {};
    for (const one of opened.splice(0)) await one.heads.close();
  });

  it('are written within 5 s of a line, and not before the first', async () => {
    await clock.advance(60_000);
    assert.deepEqual(cluster.calls, []);
    replica.write(3);
    await clock.advance(5000);
    const head = ofChain(1);
    assert.ok(head && isSigned(head));
    assert.deepEqual([head.seq, head.hash, head.replica], [3, replica.head.hash, 'drawbridge-1']);
    assert.equal(head.key, publicKey('one'));
    assert.equal(replica.unsigned, 0);
  });

  it('cost no write without new lines, and one every 5 s with new lines', async () => {
    replica.write();
    await clock.advance(5000);
    const before = cluster.calls.length;
    await clock.advance(60_000);
    assert.equal(cluster.calls.length, before);
    for (let i = 0; i < 100; i++) {
      replica.write();
      await clock.advance(100);
    }
    assert.ok(cluster.calls.length - before <= 3, String(cluster.calls.length - before));
  });

  it('of replicas that start together are all published', async () => {
    const others = [open(2), open(3)];
    for (const one of [replica, ...others]) one.write();
    await clock.advance(5000);
    assert.deepEqual(
      published()
        .map(({ chain }) => chain)
        .sort(),
      [1, 2, 3].map(chainOf),
    );
  });

  it('are written once more at the end', async () => {
    replica.write(9);
    await replica.heads.close();
    assert.equal(ofChain(1)?.seq, 9);
  });

  it('do not delay the end if the API does not answer', async () => {
    replica.write();
    cluster.fault = () => new Promise(() => {});
    const closed = replica.heads.close();
    await clock.advance(2001);
    await closed;
    assert.deepEqual(replica.problems, [
      'cannot publish the last audit head, so none covers the last lines of the journal',
    ]);
  });

  it('are written once the API is back, and the outage is logged once', async () => {
    cluster.fault = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'away');
    };
    replica.write(4);
    await clock.advance(30_000);
    assert.deepEqual(replica.problems, [
      'cannot publish the audit head; until it succeeds, the server tries again every 5 s',
    ]);
    assert.equal(replica.unsigned, 4);
    cluster.fault = () => {};
    await clock.advance(5000);
    assert.equal(ofChain(1)?.seq, 4);
    assert.equal(replica.unsigned, 0);
  });

  it('wait for the keys, and change with them', async () => {
    replica.key = undefined;
    replica.write(2);
    await clock.advance(5000);
    assert.deepEqual([published(), replica.unsigned], [[], 2]);
    replica.key = keyOf('one');
    await clock.advance(5000);
    assert.equal(ofChain(1)?.key, publicKey('one'));
    replica.key = keyOf('two');
    await clock.advance(5000);
    assert.equal(ofChain(1)?.key, publicKey('two'));
  });

  it('are written again after a client removed or changed them', async () => {
    replica.write();
    await clock.advance(5000);
    cluster.drop(configMaps, name);
    await clock.advance(305_000);
    assert.equal(ofChain(1)?.seq, 1);
    cluster.put(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: name, data: { [chainOf(1)]: '{}' } });
    await clock.advance(305_000);
    assert.equal(ofChain(1)?.seq, 1);
    assert.equal(replica.problems.length, 2);
  });

  it(`are at most ${maxHeads}: invalid ones are removed first, then the oldest`, async () => {
    const signer = new HeadSigner(keyOf('one'));
    const old = Array.from({ length: maxHeads }, (_, i) => {
      const time = formatMicroTime(clock.now() - i * 1000);
      const head = { chain: chainOf(1000 + i), seq: 1, hash: 'ab'.repeat(32), replica: 'gone', time };
      return [head.chain, JSON.stringify(signer.sign(head))];
    });
    // An entry under the name of another chain is invalid, too, whatever time it claims.
    const [, misplaced] = old[0] ?? [];
    const data = Object.fromEntries([...old, ['nonsense', '{}'], ['misplaced', misplaced]]);
    cluster.put(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: name, data });
    replica.write();
    await clock.advance(5000);
    assert.deepEqual(
      [published().length, ofChain(1)?.seq, ofChain(1000)?.seq, ofChain(1000 + maxHeads - 1)?.seq],
      [maxHeads, 1, 1, undefined],
    );
    assert.deepEqual(readHeads(cluster.find(configMaps, name)).unreadable, []);
  });

  it('count as published if only the removal of old ones fails, which the next head repeats', async () => {
    const data = Object.fromEntries(Array.from({ length: maxHeads }, (_, i) => [`invalid-${i}`, '{}']));
    cluster.put(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: name, data });
    cluster.fault = () => {
      if (ofChain(1)) throw new ApiError(503, 'ServiceUnavailable', 'away');
    };
    replica.write();
    await clock.advance(5000);
    assert.deepEqual([ofChain(1)?.seq, replica.unsigned], [1, 0]);
    assert.deepEqual(replica.problems, [
      'cannot remove old audit heads; the server tries again when it publishes the next one',
    ]);
    cluster.fault = () => {};
    replica.write();
    await clock.advance(5000);
    assert.equal(readHeads(cluster.find(configMaps, name)).unreadable.length, maxHeads - 1);
  });
});
