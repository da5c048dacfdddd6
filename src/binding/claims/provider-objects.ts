import { keyOf, type Resource } from '../../api/object.ts';
import type { Emit, Source } from '../../engine/source.ts';
import type { Clock } from '../../kit/clock.ts';
import type { StoreHandle } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ServiceNamespaceView } from '../stores/views.ts';
import { byName, byNamespace, type ClaimedView, claimedIndexes, viewClaimed } from './claimed-view.ts';
import type { ServiceNamespace } from './plan.ts';
import type { ProblemList } from './problem-list.ts';

/** Rights to a new namespace follow within seconds; what takes longer is told, milliseconds. */
const patienceMs = 10_000;

interface OpenNamespace {
  readonly serviceNamespace: string;
  readonly handle: StoreHandle<ClaimedView>;
  readonly close: () => void;
}

export interface ProviderObjectsOptions {
  readonly session: ProviderSession;
  readonly resource: Resource;
  readonly clock: Clock;
  readonly problems: ProblemList;
  /** Keys of the consumer's objects in a namespace. */
  readonly consumerKeys: (namespace: string) => Iterable<string>;
  readonly onEvent: (key: string) => void;
}

/**
 * The provider's objects of one claimed kind, under the keys of the consumer. Each service namespace has a watch of its own, which
 * comes and goes with the APIServiceNamespace: the rights to it are given one by one, and what others have there is none of ours.
 * As a source it never waits for one of them.
 */
export class ProviderObjects implements Source {
  readonly name = 'provider';
  readonly #options: ProviderObjectsOptions;
  /** By namespace of the consumer. */
  readonly #open = new Map<string, OpenNamespace>();
  #emit: Emit | undefined;

  constructor(options: ProviderObjectsOptions) {
    this.#options = options;
  }

  async start(emit: Emit, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#emit = emit;
    const { serviceNamespaces } = this.#options.session.stores;
    const unsubscribe = serviceNamespaces.subscribe((event) =>
      this.#follow('now' in event ? event.now : event.before, event.type !== 'deleted'),
    );
    signal.addEventListener(
      'abort',
      () => {
        unsubscribe();
        this.#emit = undefined;
        for (const namespace of [...this.#open.keys()]) this.#close(namespace);
      },
      { once: true },
    );
    await serviceNamespaces.whenSynced(signal);
  }

  serviceNamespace(namespace: string): ServiceNamespace {
    const { clusterNamespace, stores } = this.#options.session;
    const found = stores.serviceNamespaces.get(keyOf({ namespace: clusterNamespace, name: namespace }));
    if (!found) return { kind: 'none' };
    const { deleting, serviceNamespace } = found;
    return deleting || serviceNamespace === undefined ? { kind: 'pending' } : { kind: 'ready', name: serviceNamespace };
  }

  /** Whether what is there in the provider for a namespace of the consumer is known. */
  isKnown(namespace: string): boolean {
    return this.#open.get(namespace)?.handle.store.synced ?? false;
  }

  get(namespace: string, name: string): ClaimedView | undefined {
    const open = this.#open.get(namespace);
    return open?.handle.store.get(keyOf({ namespace: open.serviceNamespace, name }));
  }

  *keys(): Iterable<string> {
    for (const namespace of this.#open.keys()) yield* this.keysIn(namespace);
  }

  keysIn(namespace: string): string[] {
    const open = this.#open.get(namespace);
    const found = open?.handle.store.byIndex(byNamespace, open.serviceNamespace) ?? [];
    return found.map(({ name }) => keyOf({ namespace, name }));
  }

  keysNamed(name: string): string[] {
    return [...this.#open].flatMap(([namespace, { handle }]) =>
      handle.store.byIndex(byName, name).map(() => keyOf({ namespace, name })),
    );
  }

  /** Milliseconds since the quietest of its watches was last heard; 0 without any. */
  get ageMs(): number {
    return Math.max(0, ...[...this.#open.values()].map(({ handle }) => handle.store.ageMs));
  }

  #follow({ name: namespace, serviceNamespace, deleting }: ServiceNamespaceView, exists: boolean): void {
    const wanted = exists && !deleting ? serviceNamespace : undefined;
    if (this.#open.get(namespace)?.serviceNamespace !== wanted) {
      this.#close(namespace);
      if (wanted !== undefined) this.#follows(namespace, wanted);
    }
    this.#emitAll(namespace);
  }

  #follows(namespace: string, serviceNamespace: string): void {
    const { session, resource, clock, problems, onEvent } = this.#options;
    const handle = session.cluster.watch({
      resource,
      namespace: serviceNamespace,
      project: viewClaimed,
      indexes: claimedIndexes,
    });
    const unsubscribe = handle.store.subscribe((event) => {
      const { name } = 'now' in event ? event.now : event.before;
      const key = keyOf({ namespace, name });
      onEvent(key);
      this.#emit?.(key, this.name);
    });
    const told = `${resource.plural} of ${namespace}`;
    const cancel = clock.schedule(patienceMs, () => {
      const what = `The ${resource.plural} in the provider's namespace ${serviceNamespace} cannot be watched yet`;
      if (!handle.store.synced)
        problems.set(told, `${what}: has the provider granted the rights that its export claims?`);
    });
    const close = (): void => {
      cancel();
      problems.set(told, undefined);
      unsubscribe();
      handle.release();
    };
    const open = { serviceNamespace, handle, close };
    this.#open.set(namespace, open);
    handle.store.whenSynced().then(
      () => {
        if (this.#open.get(namespace) !== open) return;
        problems.set(told, undefined);
        this.#emitAll(namespace);
      },
      // It was closed before.
      () => undefined,
    );
  }

  #close(namespace: string): void {
    this.#open.get(namespace)?.close();
    this.#open.delete(namespace);
  }

  #emitAll(namespace: string): void {
    for (const key of [...this.#options.consumerKeys(namespace), ...this.keysIn(namespace)]) {
      this.#emit?.(key, 'service namespace');
    }
  }
}
