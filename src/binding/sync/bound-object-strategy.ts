import { bindFieldManager } from '../../api/binding/names.ts';
import { nameOf, type Resource } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { SyncObserver } from '../metrics.ts';
import {
  call,
  type KeyState,
  type NextStep,
  readAll,
  requestNamespace,
  type SyncAction,
  type SyncPass,
  type SyncStrategy,
} from '../sync-engine/strategy.ts';
import type { SyncMode } from '../sync-engine/syncer.ts';
import type { ConsumerObjects } from './consumer-objects.ts';
import type { Copies } from './copies.ts';
import type { Isolation } from './isolation.ts';
import { type ObjectCaches, Repairs } from './object-caches.ts';
import { copyPatch, statusPatch } from './patches.ts';
import { copyKeyOf, type ObjectAction, type ObjectFacts, plan, type SyncContext } from './plan.ts';
import { StatusRateLimiter } from './status-rate-limiter.ts';
import { isDeleting, type Projection, projectObject, type SyncedObject } from './synced-object.ts';

export interface BoundObjectStrategyOptions {
  readonly mode: SyncMode;
  readonly resources: { readonly consumer: Resource; readonly provider: Resource };
  readonly clients: { readonly consumer: Client; readonly provider: Client };
  readonly consumers: ConsumerObjects;
  readonly copies: Copies;
  readonly isolation: Isolation;
  /** Always true for cluster-scoped kinds. */
  readonly namespacesKnown: () => boolean;
  readonly context: () => SyncContext;
  readonly caches: ObjectCaches;
  readonly copyProjection: Projection;
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  readonly observer: SyncObserver;
  readonly clock: Clock;
}

/** No event shows the deletion of a copy whose namespace is not listed. */
const UNLISTED_MS = 1_000;

/** Copies the consumer's object to the provider, and the copy's status back, by merge patches. */
export class BoundObjectStrategy implements SyncStrategy {
  readonly rules = {
    forbiddenAtOnce: true,
    // Each retry is a write, and all objects of a kind may need one.
    ineffectiveCapMs: 30 * 60_000,
    ineffective: {
      provider:
        'the provider accepts writes to the copy but stores something else; ask the provider to check its webhooks and defaults',
      consumer:
        'this cluster accepts the status of the copy but stores something else; ask the provider whether its schema defines all fields of the status',
    },
  };
  readonly #options: BoundObjectStrategyOptions;
  readonly #statusLimiter = new StatusRateLimiter();
  readonly #repairs = new Repairs();

  constructor(options: BoundObjectStrategyOptions) {
    this.#options = options;
  }

  missing(key: string): string | undefined {
    const { mode, consumers, copies, isolation, resources, namespacesKnown } = this.#options;
    const isListed = consumers.state === 'listed' || (consumers.state === 'absent' && mode !== 'sync');
    if (!isListed) return `${resources.consumer.plural} of this cluster`;
    if (!namespacesKnown()) return 'the namespaces of the provider';
    const place = isolation.placeOf(key);
    if (place.kind === 'at' && !copies.isListed(place.key)) return `${resources.provider.plural} of the provider`;
    return undefined;
  }

  plan({ key }: SyncPass): SyncAction[] {
    const facts = this.#facts(key);
    const actions = plan(facts, this.#options.context());
    const { consumer, copy } = facts;
    if (consumer && copy && actions.every(({ do: verb }) => verb === 'addFinalizer' || verb === 'status')) {
      this.#repairs.recordInSync(consumer);
    }
    return actions.flatMap((action) => this.#syncActions(action, facts));
  }

  finish(key: string): KeyState {
    const { caches } = this.#options;
    const { consumer, copy, copyKey } = this.#facts(key);
    const isDeleted = !consumer && !copy;
    if (isDeleted) {
      caches.forget(key, copyKey);
      this.#statusLimiter.forget(key);
      this.#repairs.forget(key);
    }
    const isAhead = caches.consumers.isAhead(key) || (copyKey !== undefined && caches.copies.isAhead(copyKey));
    return { consumer, isDeleted, isAhead };
  }

  clear(): void {
    this.#options.caches.clear();
    this.#statusLimiter.clear();
    this.#repairs.clear();
  }

  #facts(key: string): ObjectFacts & { readonly copyKey: string | undefined } {
    const { mode, isolation, caches } = this.#options;
    const consumer = caches.consumers.get(key);
    const place = isolation.placeOf(key);
    const copyKey = copyKeyOf(place, consumer);
    const copy = copyKey === undefined ? undefined : caches.copies.get(copyKey);
    return {
      mode,
      key,
      consumer,
      deletedConsumerUid: caches.deletedConsumerUid(key),
      place,
      copyKey,
      copy,
      copyDeleteAccepted: copyKey !== undefined && copy !== undefined && caches.copies.isDeleting(copyKey, copy.uid),
      isCopyAbsent: caches.isCopyAbsent(copyKey),
    };
  }

  #syncActions(action: ObjectAction, facts: ObjectFacts): readonly SyncAction[] {
    switch (action.do) {
      case 'wait':
      case 'requeue':
      case 'report':
        return [action];
      case 'requestNamespace':
        return requestNamespace(action.namespace, this.#options.requestNamespace);
      case 'create':
        return [this.#create(action, facts)];
      case 'update':
        return [this.#update(action, facts)];
      case 'addFinalizer':
        return [this.#addFinalizer(action, facts)];
      case 'status':
        return [this.#status(action, facts)];
      case 'deleteCopy':
        return this.#deleteCopy(action, facts);
      case 'checkCopy':
        return [this.#checkCopy(action.key)];
      case 'removeFinalizer':
        return [this.#removeFinalizer(action, facts)];
    }
  }

  #create({ key, object }: ActionOf<'create'>, { consumer }: ObjectFacts): SyncAction {
    const { clients, resources, caches } = this.#options;
    return call({
      action: 'create',
      side: 'provider',
      content: `${key} ${consumer?.uid} ${consumer?.resourceVersion}`,
      repeatable: true,
      direction: 'up',
      call: async (signal) => {
        caches.recordCopyCreate(key);
        try {
          const options = { signal, fieldManager: bindFieldManager };
          await this.#cacheCopy(key, () => clients.provider.create(resources.provider, object, options));
        } catch (error) {
          if (!isAlreadyExists(error)) throw error;
          await this.#readCopy(key, signal);
        }
      },
      onSuccess: () => {
        this.#recordRepair(consumer);
        return 'replan';
      },
    });
  }

  #update({ key, patch }: ActionOf<'update'>, { consumer }: ObjectFacts): SyncAction {
    const { clients, resources, context } = this.#options;
    const content = JSON.stringify(patch);
    const update = {
      action: 'update',
      side: 'provider',
      content,
      call: (signal: AbortSignal) => {
        const options = { signal, fieldManager: bindFieldManager };
        return this.#cacheCopy(key, () => clients.provider.mergePatch(resources.provider, nameOf(key), patch, options));
      },
    } as const;
    if (!consumer || isDeleting(consumer)) return call({ ...update, onSuccess: () => 'replan' });
    return call({
      ...update,
      direction: 'up',
      onFailure: 'continue',
      isIneffective: (copy) => isUnchanged(copyPatch(consumer, copy, context()), content),
      onSuccess: () => {
        this.#recordRepair(consumer);
        return 'continue';
      },
    });
  }

  #addFinalizer({ patch }: ActionOf<'addFinalizer'>, { key, consumer }: ObjectFacts): SyncAction {
    return call({
      action: 'addFinalizer',
      side: 'consumer',
      content: JSON.stringify(patch),
      call: (signal) => this.#patchConsumer(key, patch, { signal }),
      // Deleted before it had the finalizer. The next plan deletes its copy.
      onNotFound: () => this.#onConsumerDeleted(key, consumer),
    });
  }

  #status({ patch }: ActionOf<'status'>, { key, consumer, copy }: ObjectFacts): SyncAction {
    const { caches, clock } = this.#options;
    const waitMs = this.#statusLimiter.waitMs(key, clock.monotonic());
    if (waitMs > 0) return { do: 'requeue', ms: waitMs };
    const content = JSON.stringify(patch);
    return call({
      action: 'status',
      side: 'consumer',
      content,
      direction: 'down',
      onFailure: 'continue',
      call: (signal) => {
        this.#statusLimiter.recordWrite(key, clock.monotonic());
        // Newer than the plan's if a call of this pass has added the finalizer.
        const newest = caches.consumers.get(key);
        const { uid } = patch.metadata;
        const resourceVersion = (newest?.uid === uid ? newest : consumer)?.resourceVersion;
        const atVersion = { ...patch, metadata: { uid, resourceVersion } };
        return this.#patchConsumer(key, atVersion, { signal, subresource: 'status' });
      },
      isIneffective: (answer) => copy !== undefined && isUnchanged(statusPatch(answer, copy), content),
    });
  }

  /** Without an observed deletion, the breaker (mode `sync`) and a live read come first. */
  #deleteCopy({ key, uid, inferred }: ActionOf<'deleteCopy'>, facts: ObjectFacts): SyncAction[] {
    const { clients, copies, mode, resources, caches } = this.#options;
    const afterDeletion: SyncAction[] = [{ do: 'wait', missing: `the deletion of ${key} in the provider` }];
    if (!copies.isListed(key)) afterDeletion.push({ do: 'requeue', ms: UNLISTED_MS });
    const deletion = call({
      action: 'deleteCopy',
      side: 'provider',
      content: uid,
      inferred,
      call: (signal) => clients.provider.delete(resources.provider, nameOf(key), { uid, signal }),
      onSuccess: (answer) => {
        if (!copies.isListed(key)) caches.copies.forget(key);
        else if (answer === 'absent') caches.copies.deleted(key, uid);
        else caches.copies.deleting(key, uid);
        return 'continue';
      },
    });
    if (!inferred) return [deletion, ...afterDeletion];
    const breaker: SyncAction[] = mode === 'sync' ? [{ do: 'holdDeletes' }] : [];
    return [...breaker, this.#confirmConsumerAbsent(facts.key, uid), deletion, ...afterDeletion];
  }

  #confirmConsumerAbsent(key: string, copyUid: string): SyncAction {
    const { clients, consumers, resources, caches } = this.#options;
    return call({
      action: 'confirm',
      side: 'consumer',
      content: copyUid,
      repeatable: true,
      call: async (signal) => {
        if (consumers.state === 'absent') return 'absent';
        await caches.consumers.call(key, async () =>
          projectObject(await clients.consumer.get(resources.consumer, nameOf(key), { signal })),
        );
        return 'found';
      },
      onNotFound: () => 'continue',
      onSuccess: (answer) => (answer === 'found' ? 'replan' : 'continue'),
    });
  }

  #checkCopy(key: string): SyncAction {
    return readAll({
      action: 'read',
      side: 'provider',
      content: key,
      call: (signal) => this.#readCopy(key, signal),
      onNotFound: () => {
        this.#options.caches.recordCopyAbsent(key);
        return 'replan';
      },
    });
  }

  #removeFinalizer({ patch }: ActionOf<'removeFinalizer'>, { key, consumer }: ObjectFacts): SyncAction {
    return call({
      action: 'removeFinalizer',
      side: 'consumer',
      content: JSON.stringify(patch),
      call: (signal) => this.#patchConsumer(key, patch, { signal }),
      onNotFound: () => this.#onConsumerDeleted(key, consumer),
    });
  }

  #onConsumerDeleted(key: string, consumer: SyncedObject | undefined): NextStep {
    if (consumer) this.#options.caches.recordConsumerDeleted(key, consumer.uid);
    return 'replan';
  }

  #recordRepair(consumer: SyncedObject | undefined): void {
    if (consumer && this.#repairs.wasInSync(consumer)) this.#options.observer.repaired();
  }

  #patchConsumer(
    key: string,
    patch: object,
    options: { readonly signal: AbortSignal; readonly subresource?: string },
  ): Promise<SyncedObject> {
    const { clients, resources, caches } = this.#options;
    return caches.consumers.call(key, async () =>
      projectObject(await clients.consumer.mergePatch(resources.consumer, nameOf(key), patch, options)),
    );
  }

  #readCopy(key: string, signal: AbortSignal): Promise<SyncedObject> {
    const { clients, resources } = this.#options;
    return this.#cacheCopy(key, () => clients.provider.get(resources.provider, nameOf(key), { signal }));
  }

  #cacheCopy(key: string, request: () => ReturnType<Client['get']>): Promise<SyncedObject> {
    const { copyProjection, caches } = this.#options;
    return caches.copies.call(key, async () => copyProjection(await request()));
  }
}

const isUnchanged = (patch: object | undefined, content: string): boolean =>
  patch !== undefined && JSON.stringify(patch) === content;

type ActionOf<Do extends ObjectAction['do']> = Extract<ObjectAction, { do: Do }>;
