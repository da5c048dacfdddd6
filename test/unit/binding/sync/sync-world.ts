import assert from 'node:assert/strict';
import {
  clusterNamespaceAnnotation,
  consumerUidAnnotation,
  syncerFinalizer,
} from '../../../../src/api/binding/names.ts';
import { type KubeObject, keyOf, nameOf, type ObjectName, type Resource } from '../../../../src/api/object.ts';
import { own } from '../../../../src/kit/json-value.ts';
import type { Call, MemoryCluster, Stored } from '../../../support/binding/memory-cluster.ts';
import {
  clusterNamespace,
  otherKonnectorAnnotations,
  ownAnnotations,
  SyncStage,
  type SyncStageOptions,
} from '../../../support/binding/sync-stage.ts';

interface Pending {
  readonly cluster: MemoryCluster;
  readonly settle: (error: Error | undefined) => void;
}

/**
 * Two clusters and a konnector in which nothing happens by itself: the test delivers each event, each call, and each answer. Every call of
 * the konnector is checked when an API server executes it.
 */
export class SyncWorld {
  readonly stage: SyncStage;
  readonly #calls: Pending[] = [];
  readonly #events = new Map<object, (() => void)[]>();
  readonly #copyOf: (key: ObjectName) => ObjectName;
  /** uids of objects with a finalizer of another client. */
  readonly #holding = new Set<string>();
  #held = true;
  #violation: unknown;
  #count = 0;

  constructor(options: SyncStageOptions, copyOf: (key: ObjectName) => ObjectName) {
    this.stage = new SyncStage(options);
    this.#copyOf = copyOf;
    if (options.scope === 'Namespaced') this.stage.answerNamespace('team-a');
    for (const cluster of [this.stage.consumer, this.stage.provider]) {
      cluster.deliver = (watch, event) => {
        if (!this.#held) return event();
        const events = this.#events.get(watch) ?? [];
        this.#events.set(watch, events);
        events.push(event);
      };
      cluster.fault = async (call) => {
        await this.#gate(cluster);
        try {
          this.#judge(cluster, call);
        } catch (error) {
          // The konnector would treat an error that is thrown here as a failed call.
          this.#violation ??= error;
        }
      };
      cluster.answered = () => this.#gate(cluster);
    }
  }

  /** Delivers one of the pending calls or answers, or lets it fail. */
  step(index: number, error?: Error): void {
    const [pending] = this.#calls.splice(index % Math.max(1, this.#calls.length), 1);
    pending?.settle(error);
  }

  /** Delivers some of the pending events to one watch. */
  deliver(index: number, count: number): void {
    const events = [...this.#events.values()][index % Math.max(1, this.#events.size)];
    for (const event of events?.splice(0, count) ?? []) event();
  }

  /** Ends the process. Calls that it has sent may still arrive, unless they are lost. */
  async crash(lost: boolean): Promise<void> {
    const mine = this.#calls.splice(0);
    const killed = this.stage.kill();
    // The reconciles of the old process end with their calls.
    this.#events.clear();
    for (const { settle } of mine) settle(lost ? new Error('lost') : undefined);
    await this.#drain();
    await killed;
    this.stage.start();
  }

  /** Delivers everything and waits until nothing is pending. */
  async calm(): Promise<void> {
    this.#held = false;
    for (const events of this.#events.values()) for (const event of events.splice(0)) event();
    await this.#drain();
    await this.stage.settle(600_000);
    for (const { metadata } of this.#objects().filter(({ metadata }) => this.#holding.has(metadata.uid))) {
      assert.ok(metadata.finalizers?.includes(theirs), 'the finalizer of another client is gone');
      this.hold(nameOf(keyOf(metadata)));
    }
    await this.stage.settle(60_000);
  }

  async #drain(): Promise<void> {
    do {
      this.step(0);
      await this.stage.clock.settle();
    } while (this.#calls.length > 0);
  }

  put(key: ObjectName): void {
    this.#count++;
    const before = this.stage.object(key);
    if (before?.metadata.deletionTimestamp) return;
    const spec = { n: this.#count, ...(this.#count % 3 === 0 ? { extra: { n: this.#count } } : {}) };
    this.stage.put(key, { ...before, spec, metadata: { ...before?.metadata, name: key.name } });
  }

  remove(key: ObjectName): void {
    remove(this.stage.consumer, this.stage.kettles.consumer, this.stage.object(key));
  }

  /** A client removes the finalizers by force. */
  force(key: ObjectName): void {
    this.stage.consumer.drop(this.stage.kettles.consumer, key);
  }

  /** Another client adds a finalizer to an object, or removes it. */
  hold(key: ObjectName): void {
    const object = this.stage.object(key);
    if (!object) return;
    const { finalizers = [], deletionTimestamp, uid } = object.metadata;
    const others = finalizers.filter((finalizer) => finalizer !== theirs);
    if (others.length < finalizers.length) {
      this.#holding.delete(uid);
      this.stage.put(key, { ...object, metadata: { ...object.metadata, finalizers: others } });
    } else if (!deletionTimestamp) {
      this.#holding.add(uid);
      this.stage.put(key, { ...object, metadata: { ...object.metadata, finalizers: [theirs, ...finalizers] } });
    }
  }

  report(key: ObjectName): void {
    this.stage.report(this.#copyOf(key), { n: ++this.#count });
  }

  /** A client in the provider edits a copy. */
  tamper(key: ObjectName): void {
    const copy = this.#ours(key);
    if (copy) this.stage.putCopy(this.#copyOf(key), { ...copy, spec: { n: -1, theirs: true } });
  }

  removeCopy(key: ObjectName): void {
    remove(this.stage.provider, this.stage.kettles.provider, this.#ours(key));
  }

  /** Another client creates an object under the key of our copy, or deletes it. */
  foreign(key: ObjectName): void {
    const at = this.#copyOf(key);
    const there = this.stage.copy(at);
    if (!there) this.stage.putCopy(at, { metadata: { name: at.name, annotations: copyMarksOfOther }, spec: { n: -2 } });
    else if (!isOurs(there)) this.stage.provider.drop(this.stage.kettles.provider, at);
  }

  /** Asserts that no call was wrong and that both sides are in sync. */
  check(keys: readonly ObjectName[]): void {
    if (this.#violation !== undefined) throw this.#violation;
    for (const key of keys) {
      const [object, copy] = [this.stage.object(key), this.stage.copy(this.#copyOf(key))];
      const what = JSON.stringify({ key, object, copy });
      if (copy && !isOurs(copy)) {
        assert.equal(object?.metadata.deletionTimestamp, undefined, what);
        continue;
      }
      if (!object) {
        assert.equal(copy, undefined, what);
        continue;
      }
      assert.equal(object.metadata.deletionTimestamp, undefined, what);
      assert.ok(copy, what);
      assert.ok(object.metadata.finalizers?.includes(syncerFinalizer), what);
      assert.deepEqual(copy.spec, object.spec, what);
      assert.deepEqual(object.status, copy.status, what);
      assert.deepEqual(copy.metadata.annotations, ownAnnotations(keyOf(key), object.metadata.uid), what);
    }
    const left = this.stage.provider.list(this.stage.kettles.provider).filter(isOurs).length;
    assert.ok(left <= keys.length);
  }

  #ours(key: ObjectName): Stored | undefined {
    const copy = this.stage.copy(this.#copyOf(key));
    return copy && isOurs(copy) ? copy : undefined;
  }

  #gate(cluster: MemoryCluster): Promise<void> {
    if (!this.#held) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#calls.push({ cluster, settle: (error) => (error ? reject(error) : resolve()) });
    });
  }

  #judge(cluster: MemoryCluster, call: Call): void {
    if (call.plural !== 'kettles') return;
    if (cluster === this.stage.provider) this.#judgeProvider(call);
    else this.#judgeConsumer(call);
  }

  #judgeProvider(call: Call): void {
    const { provider, kettles } = this.stage;
    const at = provider.list(kettles.provider).find(({ metadata }) => keyOf(metadata) === call.name);
    const uid = call.uid ?? own(own(call.body, 'metadata'), 'uid');
    if (call.verb === 'delete') assert.ok(uid, 'deletes name the uid');
    if (!at || uid !== at.metadata.uid || (call.verb !== 'delete' && call.verb !== 'patch')) return;
    assert.ok(isOurs(at), `${call.verb} of what is not ours: ${JSON.stringify(at)}`);
    if (call.verb !== 'delete') return;
    const of = at.metadata.annotations?.[consumerUidAnnotation];
    assert.ok(of, 'deletes only what tells whose copy it is');
    const twin = this.#objects().find(({ metadata }) => metadata.uid === of);
    assert.ok(!twin || twin.metadata.deletionTimestamp, `delete of the copy of a live object: ${JSON.stringify(twin)}`);
  }

  #judgeConsumer(call: Call): void {
    const object = this.#objects().find(({ metadata }) => keyOf(metadata) === call.name);
    if (!object || call.verb !== 'patch') return;
    const patch = own(call.body, 'metadata');
    const finalizers = own(patch, 'finalizers');
    const carriedOut =
      own(patch, 'uid') === object.metadata.uid && own(patch, 'resourceVersion') === object.metadata.resourceVersion;
    if (!Array.isArray(finalizers) || !carriedOut || finalizers.includes(syncerFinalizer)) return;
    const copies = this.stage.provider.list(this.stage.kettles.provider).filter(isOurs);
    const copy = copies.find(({ metadata }) => metadata.annotations?.[consumerUidAnnotation] === object.metadata.uid);
    assert.equal(copy, undefined, 'the finalizer went before the copy');
  }

  #objects(): readonly Stored[] {
    return this.stage.consumer.list(this.stage.kettles.consumer);
  }
}

const theirs = 'acme/hold';
const copyMarksOfOther = { ...otherKonnectorAnnotations('', 'elsewhere'), [clusterNamespaceAnnotation]: 'kb-other' };

const isOurs = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[clusterNamespaceAnnotation] === clusterNamespace;

/** Deletes as kubectl delete does. */
function remove(cluster: MemoryCluster, resource: Resource, object: Stored | undefined): void {
  if (!object) return;
  if (!object.metadata.finalizers?.length) cluster.drop(resource, object.metadata);
  else {
    const deletionTimestamp = object.metadata.deletionTimestamp ?? '2026-11-21T09:00:00Z';
    cluster.put(resource, { ...object, metadata: { ...object.metadata, deletionTimestamp } });
  }
}
