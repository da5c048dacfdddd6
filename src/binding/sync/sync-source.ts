import type { Emit, Source } from '../../engine/source.ts';
import type { Store } from '../../kube/store.ts';
import type { ServiceNamespaceView } from '../stores/views.ts';
import type { ConsumerObjects } from './consumer-objects.ts';
import type { Copies } from './copies.ts';
import type { Isolation } from './isolation.ts';
import type { Sides } from './sides.ts';

export interface SyncSourceOptions {
  readonly consumers: ConsumerObjects;
  readonly copies: Copies;
  readonly isolation: Isolation;
  readonly sides: Sides;
  /** Which namespaces of consumer and provider belong together; absent where that plays no part. */
  readonly serviceNamespaces?: { readonly store: Store<ServiceNamespaceView>; readonly clusterNamespace: string };
  /** Called at every start, before the first event. */
  readonly onStart: () => void;
  /** Called after each event of either side. */
  readonly onEvent: (side: 'consumer' | 'provider', key: string) => void;
}

/**
 * Keys of consumer objects, from both sides' events. It is ready at once: keys whose other side is not known yet are told to wait by the
 * reconciler and come again when it is, so that one namespace that cannot be listed holds up no other.
 */
export class SyncSource implements Source {
  readonly name = 'objects';
  readonly #options: SyncSourceOptions;
  #emit: Emit | undefined;

  constructor(options: SyncSourceOptions) {
    this.#options = options;
  }

  start(emit: Emit, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { consumers, copies, sides, serviceNamespaces, onStart, onEvent } = this.#options;
    onStart();
    this.#emit = emit;
    const all = (): void => this.wakeAll('listed');
    const unsubscribes = [
      consumers.subscribe((event) => {
        const key = sides.observeConsumer(event);
        onEvent('consumer', key);
        emit(key, 'consumer');
      }),
      copies.subscribe((event) => {
        const key = sides.observeCopy(event);
        if (key === undefined) return;
        onEvent('provider', key);
        emit(key, 'provider');
      }),
      consumers.onListed(all),
      copies.onListed(all),
      serviceNamespaces ? this.#followNamespaces(serviceNamespaces, signal) : () => undefined,
    ];
    signal.addEventListener(
      'abort',
      () => {
        if (this.#emit === emit) this.#emit = undefined;
        for (const unsubscribe of unsubscribes) unsubscribe();
      },
      { once: true },
    );
    return Promise.resolve();
  }

  wake(key: string, reason: string): void {
    this.#emit?.(key, reason);
  }

  /** Every consumer object and everything that may be a copy of one. */
  wakeAll(reason: string): void {
    const { consumers, copies, isolation } = this.#options;
    if (!this.#emit) return;
    for (const { key } of consumers.list()) this.#emit(key, reason);
    for (const { key } of copies.store.list()) {
      const consumerKey = isolation.consumerKeyOf(key);
      if (consumerKey !== undefined) this.#emit(consumerKey, reason);
    }
  }

  #followNamespaces(
    { store, clusterNamespace }: NonNullable<SyncSourceOptions['serviceNamespaces']>,
    signal: AbortSignal,
  ): () => void {
    store.whenSynced(signal).then(
      () => this.wakeAll('namespaces'),
      () => undefined,
    );
    return store.subscribe((event) => {
      const view = 'now' in event ? event.now : event.before;
      if (view.namespace !== clusterNamespace) return;
      const unchanged =
        event.type === 'updated' &&
        event.before.serviceNamespace === event.now.serviceNamespace &&
        event.before.deleting === event.now.deleting;
      if (unchanged) return;
      for (const { key } of this.#options.consumers.inNamespace(view.name)) this.#emit?.(key, 'namespace');
    });
  }
}
