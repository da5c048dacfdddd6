import { bindFieldManager, ownerLabel } from '../../api/binding/names.ts';
import { type KubeObject, nameOf, type ObjectName, type Resource } from '../../api/object.ts';
import { stringMap } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import type { Log } from '../../observe/log.ts';
import type { NamespaceView } from '../stores/consumer-stores.ts';
import {
  call,
  type KeyState,
  readAll,
  requestNamespace,
  type SyncAction,
  type SyncPass,
  type SyncStrategy,
} from '../sync-engine/strategy.ts';
import type { Side } from '../sync-engine/syncer.ts';
import { type ClaimedView, claimedView } from './claimed-view.ts';
import { copyOf, isInSync } from './copy.ts';
import type { ClaimAction, ClaimFacts, ClaimWrite } from './plan.ts';
import type { ProviderObjects } from './provider-objects.ts';
import type { SelectedObjects } from './selected-objects.ts';

export interface ClaimedObjectStrategyOptions {
  readonly resource: Resource;
  readonly clients: Readonly<Record<Side, Client>>;
  readonly consumer: SelectedObjects;
  readonly provider: ProviderObjects;
  readonly namespaces: Store<NamespaceView>;
  /** Undefined while bound objects exist: claimed objects stay as long as they do. */
  readonly plan: ((facts: ClaimFacts) => readonly ClaimAction[]) | undefined;
  /** The part of a claim that selects an object, in words. `namespace`: in the consumer. */
  readonly selectedBy: (object: ClaimedView, namespace: string) => string | undefined;
  readonly mayCopyToConsumer: (namespace: string, name: string) => boolean;
  /** uid of the namespace that the provider created for this consumer. */
  readonly providerIdentity: () => string | undefined;
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  readonly log: Log;
}

type LivePair = Record<Side, KubeObject | undefined>;

/** This namespace exists as long as its cluster, so its uid identifies the consumer cluster. */
const consumerIdentityNamespace = 'kube-system';
const storedOtherwise = {
  consumer:
    'this cluster accepts writes to the copy but stores something else; correct the webhook that changes it, then delete the copy: the server creates it again',
  provider:
    'the provider accepts writes to the copy but stores something else; ask the provider to correct the webhook that changes it, then change your object, for example with a label: the server writes the copy again',
};

/**
 * Syncs claimed objects. If a plan from the stores has actions, the pass reads both sides live,
 * plans again, and runs only that plan, so that a stale store overwrites and deletes nothing.
 */
export class ClaimedObjectStrategy implements SyncStrategy {
  readonly rules = {
    // A provider may grant permissions on a namespace just after they are first needed.
    forbiddenAtOnce: false,
    // Claimable kinds have fixed schemas: a repeat helps only once the original changes.
    ineffectiveCapMs: Number.POSITIVE_INFINITY,
    ineffective: storedOtherwise,
  };
  readonly #options: ClaimedObjectStrategyOptions;
  readonly #live = new WeakMap<SyncPass, LivePair>();

  constructor(options: ClaimedObjectStrategyOptions) {
    this.#options = options;
  }

  missing(key: string): string | undefined {
    const { plan, provider } = this.#options;
    if (!plan) return 'the deletion of the bound objects';
    const { namespace } = placeOf(key);
    const service = provider.serviceNamespace(namespace);
    return service.kind === 'ready' && !provider.isListed(namespace) ? `objects of ${service.name}` : undefined;
  }

  plan(pass: SyncPass): readonly SyncAction[] {
    const live = this.#live.get(pass);
    const facts = live
      ? this.#facts(pass.key, live.consumer && claimedView(live.consumer), live.provider && claimedView(live.provider))
      : this.#watchedFacts(pass.key);
    const actions = this.#options.plan?.(facts) ?? [];
    if (!live && actions.some(({ do: verb }) => writes.has(verb))) return [this.#read(pass, facts)];
    const isInferred = actions.some((action) => action.do === 'delete' && action.inferred);
    const breaker: SyncAction[] = isInferred ? [{ do: 'holdDeletes' }] : [];
    return [...breaker, ...actions.flatMap((action) => this.#syncActions(action, pass.key, facts, live))];
  }

  #syncActions(action: ClaimAction, key: string, facts: ClaimFacts, live: LivePair | undefined): readonly SyncAction[] {
    switch (action.do) {
      case 'wait':
      case 'requeue':
      case 'report':
        return [action];
      case 'requestNamespace':
        return requestNamespace(action.namespace, this.#options.requestNamespace);
      default:
        return live ? [this.#write(key, action, facts, live)] : [];
    }
  }

  finish(key: string): KeyState {
    const { consumer, provider } = this.#options;
    const { namespace, name } = placeOf(key);
    const consumerObject = consumer.get(key);
    const providerObject = provider.get(namespace, name);
    consumer.deletions.retain(key, providerObject?.origin.consumerUid);
    provider.deletions.retain(key, consumerObject?.origin.providerUid);
    return { consumer: consumerObject, isDeleted: !consumerObject && !providerObject, isAhead: false };
  }

  clear(): void {}

  countWithActions(keys: Iterable<string>, plan: (facts: ClaimFacts) => readonly ClaimAction[]): number {
    let count = 0;
    for (const key of keys) if (plan(this.#watchedFacts(key)).length > 0) count++;
    return count;
  }

  #watchedFacts(key: string): ClaimFacts {
    const { consumer, provider } = this.#options;
    const { namespace, name } = placeOf(key);
    return this.#facts(key, consumer.get(key), provider.get(namespace, name));
  }

  #facts(key: string, consumer: ClaimedView | undefined, provider: ClaimedView | undefined): ClaimFacts {
    const { namespaces, selectedBy, mayCopyToConsumer, providerIdentity } = this.#options;
    const { namespace, name } = placeOf(key);
    const namespaceView = namespaces.get(namespace);
    return {
      consumer,
      provider,
      claimed: {
        consumer: consumer !== undefined && selectedBy(consumer, namespace) !== undefined,
        provider: provider !== undefined && selectedBy(provider, namespace) !== undefined,
      },
      consumerNamespace: namespace,
      consumerCluster: namespaces.get(consumerIdentityNamespace)?.uid,
      isNamespaceActive: namespaceView !== undefined && !namespaceView.deleting,
      mayCopyToConsumer: mayCopyToConsumer(namespace, name),
      serviceNamespace: this.#options.provider.serviceNamespace(namespace),
      providerIdentity: providerIdentity(),
      deleted: {
        consumer: this.#options.consumer.deletions.get(key),
        provider: this.#options.provider.deletions.get(key),
      },
    };
  }

  #read(pass: SyncPass, facts: ClaimFacts): SyncAction {
    const { clients, resource } = this.#options;
    const live: LivePair = { consumer: undefined, provider: undefined };
    const read = (side: Side) => ({
      action: 'read',
      side,
      content: pass.key,
      call: (signal: AbortSignal) => clients[side].get(resource, placeIn(side, pass.key, facts), { signal }),
      onNotFound: () => 'continue' as const,
      onSuccess(object: KubeObject) {
        live[side] = object;
        return 'continue' as const;
      },
    });
    this.#live.set(pass, live);
    return readAll(read('consumer'), read('provider'));
  }

  /** Rejected if the object has changed since the live read; a delete, if it was replaced. */
  #write(key: string, action: ClaimWrite, facts: ClaimFacts, live: LivePair): SyncAction {
    const { log } = this.#options;
    const { do: verb, side } = action;
    const original = facts[otherOf(side)];
    return call({
      action: verb,
      side,
      content: writeContentOf(action, facts[side], original),
      inferred: action.do === 'delete' && action.inferred,
      ...(verb === 'label' ? {} : { direction: side === 'provider' ? ('up' as const) : ('down' as const) }),
      call: (signal) => this.#call(action, placeIn(side, key, facts), live, signal),
      isIneffective: (answer) => {
        if (action.do !== 'update' || !answer || !original) return false;
        const copy = claimedView(answer);
        return copy !== undefined && !isInSync(original, copy, action.identity);
      },
      onSuccess: (answer) => {
        live[side] = answer;
        log.info('claimed object written or deleted', { key, action: verb, side, why: this.#selectedBy(facts) });
        return 'continue';
      },
    });
  }

  async #call(
    action: ClaimWrite,
    place: ObjectName,
    live: LivePair,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const { resource, clients } = this.#options;
    const { side } = action;
    const client = clients[side];
    const options = { fieldManager: bindFieldManager, signal };
    const current = live[side];
    const original = live[otherOf(side)];
    switch (action.do) {
      case 'delete':
        await client.delete(resource, place, { uid: action.uid, signal });
        return undefined;
      case 'label':
        return current && client.replace(resource, withOwner(current, side), options);
      case 'create':
        return original && client.create(resource, copyOf(original, action.identity), options);
      case 'update':
        return original && client.replace(resource, copyOf(original, action.identity, current), options);
    }
  }

  #selectedBy({ consumer, provider, consumerNamespace }: ClaimFacts): string | undefined {
    const { selectedBy } = this.#options;
    return (
      (consumer && selectedBy(consumer, consumerNamespace)) ?? (provider && selectedBy(provider, consumerNamespace))
    );
  }
}

function placeOf(key: string): { readonly namespace: string; readonly name: string } {
  const { namespace = '', name } = nameOf(key);
  return { namespace, name };
}

/** The key's object on a side. Throws if it needs a service namespace that is not ready. */
function placeIn(side: Side, key: string, { serviceNamespace }: ClaimFacts): ObjectName {
  const place = placeOf(key);
  if (side === 'consumer') return place;
  // No fallback to the consumer's name: in the provider, it may belong to another consumer.
  if (serviceNamespace.kind !== 'ready') throw new Error(`${key} has no service namespace`);
  return { namespace: serviceNamespace.name, name: place.name };
}

const otherOf = (side: Side): Side => (side === 'consumer' ? 'provider' : 'consumer');

const writes: ReadonlySet<ClaimAction['do']> = new Set(['label', 'create', 'update', 'delete']);

function withOwner(object: KubeObject, owner: Side): KubeObject {
  const labels = { ...stringMap(object.metadata.labels), [ownerLabel]: owner };
  return { ...object, metadata: { ...object.metadata, labels } };
}

/** Identifies the content of an action, without the origin annotations. */
function writeContentOf(
  action: ClaimWrite,
  current: ClaimedView | undefined,
  original: ClaimedView | undefined,
): string {
  if (action.do === 'delete') return action.uid;
  if (action.do === 'label') return current?.uid ?? '';
  return `${original?.uid} ${original?.contentDigest} ${original?.metadataDigest}`;
}
