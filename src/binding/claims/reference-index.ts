import { text } from '../../kube/fields.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { IsolationName } from '../stores/provider-stores.ts';
import type { SyncedObject } from '../sync/synced-object.ts';
import { type ReferencePath, referencesIn } from './reference-path.ts';

/** The consumer's objects of a kind that refers, as its syncer sees them. */
export interface Referrers {
  /** Not bound: what such objects refer to may be shared, but by that nothing of the provider is invited. */
  readonly foreign?: boolean;
  subscribe(listener: (event: StoreEvent<SyncedObject>) => void): () => void;
}

/** Where objects of one kind hold the names of what they refer to. */
export interface ReferencePaths {
  readonly name: ReferencePath;
  readonly namespace: ReferencePath | undefined;
  /** Decides where a name without a namespace points to. */
  readonly isolation: IsolationName;
}

/** Name and namespace of something that gained or lost a referrer; without a namespace, all of that name. */
export interface Target {
  readonly namespace: string | undefined;
  readonly name: string;
}

/** One object as one reference of a claim reads it. */
interface Referrer {
  readonly words: string;
  readonly foreign: boolean;
  targets: ReadonlyMap<string, Target>;
}

/** Who refers to what, kept up to date from the watches of the objects that refer, so that asking costs nothing. */
export class ReferenceIndex {
  /** By target. */
  readonly #referrers = new Map<string, Set<Referrer>>();
  readonly #listeners = new Set<(target: Target) => void>();
  readonly #unsubscribes: (() => void)[] = [];

  /** `kind` says in words what refers: `widgets.example.dev`. */
  add(kind: string, referrers: Referrers, paths: ReferencePaths): void {
    const known = new Map<string, Referrer>();
    const onEvent = (event: StoreEvent<SyncedObject>): void => {
      const words = `${kind} ${event.key}`;
      const referrer = known.get(event.key) ?? { words, foreign: referrers.foreign ?? false, targets: new Map() };
      const before = referrer.targets;
      const now = event.type === 'deleted' ? new Map<string, Target>() : targetsIn(event.now, paths);
      for (const [key, target] of now) if (!before.has(key)) this.#link(key, target, referrer);
      for (const [key, target] of before) if (!now.has(key)) this.#unlink(key, target, referrer);
      referrer.targets = now;
      if (now.size > 0) known.set(event.key, referrer);
      else known.delete(event.key);
    };
    this.#unsubscribes.push(referrers.subscribe(onEvent));
  }

  /** One object that refers to `namespace/name`, in words; undefined when none does. */
  referrer(namespace: string, name: string): string | undefined {
    for (const key of [keyOf({ namespace, name }), keyOf({ namespace: undefined, name })]) {
      for (const { words } of this.#referrers.get(key) ?? []) return words;
    }
    return undefined;
  }

  /** Whether a bound object refers to that name in that very namespace, and not just to the name. */
  invites(namespace: string, name: string): boolean {
    return hasBound(this.#referrers.get(keyOf({ namespace, name })));
  }

  subscribe(listener: (target: Target) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#listeners.clear();
    this.#referrers.clear();
  }

  #link(key: string, target: Target, referrer: Referrer): void {
    const referrers = this.#referrers.get(key) ?? new Set();
    const isNews = referrers.size === 0 || (!referrer.foreign && !hasBound(referrers));
    this.#referrers.set(key, referrers.add(referrer));
    if (isNews) this.#notify(target);
  }

  #unlink(key: string, target: Target, referrer: Referrer): void {
    const referrers = this.#referrers.get(key);
    referrers?.delete(referrer);
    if (referrers?.size !== 0) return;
    this.#referrers.delete(key);
    this.#notify(target);
  }

  #notify(target: Target): void {
    for (const listener of [...this.#listeners]) listener(target);
  }
}

function hasBound(referrers: Iterable<Referrer> = []): boolean {
  for (const { foreign } of referrers) if (!foreign) return true;
  return false;
}

function targetsIn({ object }: SyncedObject, paths: ReferencePaths): Map<string, Target> {
  const home = text(object.metadata, 'namespace');
  const targets = new Map<string, Target>();
  for (const { name, namespace } of referencesIn(object, paths.name, paths.namespace)) {
    // A reference that could name its namespace and does not means its own, as everywhere in Kubernetes.
    const staysHome = paths.namespace !== undefined || paths.isolation === 'Namespaced';
    const target = { name, namespace: namespace ?? (staysHome ? home : undefined) };
    if (staysHome && target.namespace === undefined) continue;
    if (!name.includes('/')) targets.set(keyOf(target), target);
  }
  return targets;
}

/** Nothing that an object says can pass for "every namespace": a namespace that is said is never empty. */
const keyOf = ({ namespace = '', name }: Target): string => `${namespace}/${name}`;
