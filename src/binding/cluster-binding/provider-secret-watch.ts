import { keyOf, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import type { Emit, Source } from '../../engine/source.ts';
import type { Store, StoreHandle } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { type SecretView, secretView } from '../sessions/secret-view.ts';

/**
 * Watches the one Secret of the provider that the ClusterBinding names, once that is known. Nobody waits for it: heartbeats must go
 * out also where the Secret may not be watched.
 */
export class ProviderSecretWatch implements Source {
  readonly name = 'provider-secret';
  readonly #session: ProviderSession;
  /** Of the ClusterBinding. */
  readonly #key: string;
  #watched: { readonly secret: string; readonly handle: StoreHandle<SecretView> } | undefined;

  constructor(session: ProviderSession, key: string) {
    this.#session = session;
    this.#key = key;
  }

  start(emit: Emit, signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#session.stores.clusterBindings.subscribe((event) => {
      if (event.type === 'deleted' || event.key !== this.#key) return;
      const { namespace, secretRef } = event.now;
      this.#watch(keyOf({ namespace, name: secretRef.name }), emit);
    });
    signal.addEventListener(
      'abort',
      () => {
        unsubscribe();
        this.#release();
      },
      { once: true },
    );
    return Promise.resolve();
  }

  /** The store of that Secret (`namespace/name`); undefined while it is not watched. */
  store(secret: string): Store<SecretView> | undefined {
    return this.#watched?.secret === secret ? this.#watched.handle.store : undefined;
  }

  #watch(secret: string, emit: Emit): void {
    if (this.#watched?.secret === secret) return;
    this.#release();
    const { namespace = '', name } = nameOf(secret);
    const fieldSelector = `metadata.name=${name}`;
    const handle = this.#session.cluster.watch({ resource: secrets, namespace, fieldSelector, project: secretView });
    this.#watched = { secret, handle };
    const tell = (): void => {
      if (this.#watched?.handle === handle) emit(this.#key, this.name);
    };
    handle.store.subscribe(tell);
    handle.store.whenSynced().then(tell, () => undefined);
  }

  #release(): void {
    this.#watched?.handle.release();
    this.#watched = undefined;
  }
}
