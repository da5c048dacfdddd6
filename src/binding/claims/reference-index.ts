import { Listeners } from '../../kit/listeners.ts';
import { text } from '../../kube/fields.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { IsolationName } from '../stores/provider-stores.ts';
import type { SyncedObject } from '../sync/synced-object.ts';
import { type ReferencePath, referencesIn } from './reference-path.ts';

export interface Referrers {
  /** Not bound: its references select objects, but alone permit no copy from the provider. */
  readonly unbound?: boolean;
  subscribe(listener: (event: StoreEvent<SyncedObject>) => void): () => void;
}

export interface ReferencePaths {
  readonly name: ReferencePath;
  readonly namespace: ReferencePath | undefined;
  /** Without a namespace path: `Namespaced` means the referrer's namespace, others every one. */
  readonly isolation: IsolationName;
}

/** Without a namespace: all objects of that name. */
export interface Target {
  readonly namespace: string | undefined;
  readonly name: string;
}

interface Referrer {
  readonly label: string;
  readonly unbound: boolean;
  targets: ReadonlyMap<string, Target>;
}

/** Which objects others refer to, kept current by watch events of the referring objects. */
export class ReferenceIndex {
  readonly #referrers = new Map<string, Set<Referrer>>();
  readonly #listeners = new Listeners<Target>();
  readonly #unsubscribes: (() => void)[] = [];

  /** `kind`: its name in messages, such as `widgets.example.dev`. */
  add(kind: string, referrers: Referrers, paths: ReferencePaths): void {
    const referrersByKey = new Map<string, Referrer>();
    const onEvent = (event: StoreEvent<SyncedObject>): void => {
      const label = `${kind} ${event.key}`;
      const referrer = referrersByKey.get(event.key) ?? {
        label,
        unbound: referrers.unbound ?? false,
        targets: new Map(),
      };
      const before = referrer.targets;
      const now = event.type === 'deleted' ? new Map<string, Target>() : targetsIn(event.now, paths);
      for (const [key, target] of now) if (!before.has(key)) this.#link(key, target, referrer);
      for (const [key, target] of before) if (!now.has(key)) this.#unlink(key, target, referrer);
      referrer.targets = now;
      if (now.size > 0) referrersByKey.set(event.key, referrer);
      else referrersByKey.delete(event.key);
    };
    this.#unsubscribes.push(referrers.subscribe(onEvent));
  }

  /** One object that refers to `namespace/name`, for messages. */
  referrer(namespace: string, name: string): string | undefined {
    for (const key of [targetKey({ namespace, name }), targetKey({ namespace: undefined, name })]) {
      for (const { label } of this.#referrers.get(key) ?? []) return label;
    }
    return undefined;
  }

  /** Whether a bound object refers to that name in exactly that namespace. */
  hasBoundReferrer(namespace: string, name: string): boolean {
    return hasBound(this.#referrers.get(targetKey({ namespace, name })));
  }

  /** Calls back with each target whose selection may have changed; returns the unsubscriber. */
  subscribe(listener: (target: Target) => void): () => void {
    return this.#listeners.add(listener);
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#listeners.clear();
    this.#referrers.clear();
  }

  #link(key: string, target: Target, referrer: Referrer): void {
    const referrers = this.#referrers.get(key) ?? new Set();
    const selectsMore = referrers.size === 0 || (!referrer.unbound && !hasBound(referrers));
    this.#referrers.set(key, referrers.add(referrer));
    if (selectsMore) this.#listeners.notify(target);
  }

  #unlink(key: string, target: Target, referrer: Referrer): void {
    const referrers = this.#referrers.get(key);
    referrers?.delete(referrer);
    if (referrers?.size !== 0) return;
    this.#referrers.delete(key);
    this.#listeners.notify(target);
  }
}

function hasBound(referrers: Iterable<Referrer> = []): boolean {
  for (const { unbound } of referrers) if (!unbound) return true;
  return false;
}

function targetsIn({ object }: SyncedObject, paths: ReferencePaths): Map<string, Target> {
  const ownNamespace = text(object.metadata, 'namespace');
  const targets = new Map<string, Target>();
  for (const { name, namespace } of referencesIn(object, paths.name, paths.namespace)) {
    // A namespace path without a value means the referrer's own, as elsewhere in Kubernetes.
    const defaultsToOwn = paths.namespace !== undefined || paths.isolation === 'Namespaced';
    const target = { name, namespace: namespace ?? (defaultsToOwn ? ownNamespace : undefined) };
    if (defaultsToOwn && target.namespace === undefined) continue;
    if (!name.includes('/')) targets.set(targetKey(target), target);
  }
  return targets;
}

/** An empty namespace means every namespace; no reference names an empty one. */
const targetKey = ({ namespace = '', name }: Target): string => `${namespace}/${name}`;
