import { kubeconfigNamespace, providerKubeconfigLabel } from '../../api/binding/names.ts';
import { type KubeObject, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { own, stringMap } from '../../kit/json-value.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store, StoreHandle } from '../../kube/store.ts';
import { type CommonView, commonView } from '../stores/common-view.ts';

/**
 * Watches the consumer's kubeconfig Secrets: the Secrets that a binding or bundle names, in any namespace, and labeled Secrets in the
 * namespace `kube-bind`.
 */
export class SecretWatches {
  /** The Secrets in the namespace `kube-bind` with the label `kube-bind.io/provider-kubeconfig=true`. */
  readonly labeled: Store<SecretView>;
  readonly #consumer: Cluster;
  readonly #changed: (secret: string) => void;
  readonly #named = new Map<string, { readonly handle: StoreHandle<SecretView>; readonly unsubscribe: () => void }>();

  /**
   * Calls `changed` with `namespace/name` of a Secret passed to `watch` when the result of `get` may have changed. For labeled Secrets,
   * subscribe to `labeled`.
   */
  constructor(consumer: Cluster, changed: (secret: string) => void) {
    this.#consumer = consumer;
    this.#changed = changed;
    const labelSelector = `${providerKubeconfigLabel}=true`;
    const namespace = kubeconfigNamespace;
    this.labeled = consumer.watch({ resource: secrets, namespace, labelSelector, project: secretView }).store;
  }

  /** Watches the Secret (`namespace/name`) until `drop`. Idempotent. */
  watch(secret: string): void {
    if (this.#named.has(secret)) return;
    const { namespace = '', name } = nameOf(secret);
    const fieldSelector = `metadata.name=${name}`;
    const handle = this.#consumer.watch({ resource: secrets, namespace, fieldSelector, project: secretView });
    const unsubscribe = handle.store.subscribe(() => this.#changed(secret));
    this.#named.set(secret, { handle, unsubscribe });
    // The store has no event for a Secret that does not exist.
    handle.store.whenSynced().then(
      () => this.#changed(secret),
      () => undefined,
    );
  }

  /** Ends the watch, if there is one. */
  drop(secret: string): void {
    const watched = this.#named.get(secret);
    this.#named.delete(secret);
    watched?.unsubscribe();
    watched?.handle.release();
  }

  /** Ends the watches of all Secrets that were passed to `watch`. The watch of labeled Secrets continues. */
  dropAll(): void {
    for (const secret of [...this.#named.keys()]) this.drop(secret);
  }

  /**
   * The Secret, from its own watch or, until that has synced, from `labeled`. `pending`: its watch has not synced, and `labeled` does not
   * have it. Undefined: it does not exist, or it is not watched and `labeled` does not have it.
   */
  get(secret: string): SecretView | undefined | 'pending' {
    const store = this.#named.get(secret)?.handle.store;
    if (store?.synced) return store.get(secret);
    return this.labeled.get(secret) ?? (store ? 'pending' : undefined);
  }
}

/** A kubeconfig Secret of either cluster. */
export interface SecretView extends CommonView {
  /** By key: the value in base64, as in the API. */
  readonly data: Readonly<Record<string, string>>;
}

/** Projects a Secret to what stores keep; undefined without uid or resourceVersion. */
export function secretView(object: KubeObject): SecretView | undefined {
  const common = commonView(object);
  if (!common) return undefined;
  return { ...common, data: stringMap(own(object, 'data')) };
}

/** The decoded value of a key of the Secret; undefined without the key. */
export function textOf({ data }: SecretView, key: string): string | undefined {
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
}

/** Encodes a value for the `data` of a Secret. */
export const dataOf = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
