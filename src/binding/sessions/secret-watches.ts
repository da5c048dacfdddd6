import { kubeconfigNamespace, providerKubeconfigLabel } from '../../api/binding/names.ts';
import { type KubeObject, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { own, stringMap } from '../../kit/json-value.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store, StoreHandle } from '../../kube/store.ts';
import { type CommonView, commonView } from '../stores/common-view.ts';

/** Secrets that a binding or bundle names, and labeled ones in the namespace `kube-bind`. */
export class SecretWatches {
  /** In namespace `kube-bind`, with label `kube-bind.io/provider-kubeconfig=true`. */
  readonly labeled: Store<SecretView>;
  readonly #consumer: Cluster;
  readonly #changed: (secret: string) => void;
  readonly #named = new Map<string, { readonly handle: StoreHandle<SecretView>; readonly unsubscribe: () => void }>();

  /** `changed`: `get` may differ for a Secret that was passed to `watch`. */
  constructor(consumer: Cluster, changed: (secret: string) => void) {
    this.#consumer = consumer;
    this.#changed = changed;
    const labelSelector = `${providerKubeconfigLabel}=true`;
    const namespace = kubeconfigNamespace;
    this.labeled = consumer.watch({ resource: secrets, namespace, labelSelector, project: secretView }).store;
  }

  /** Until `drop`. Idempotent. */
  watch(secret: string): void {
    if (this.#named.has(secret)) return;
    const { namespace = '', name } = nameOf(secret);
    const fieldSelector = `metadata.name=${name}`;
    const handle = this.#consumer.watch({ resource: secrets, namespace, fieldSelector, project: secretView });
    const unsubscribe = handle.store.subscribe(() => this.#changed(secret));
    this.#named.set(secret, { handle, unsubscribe });
    // A Secret that does not exist has no event.
    handle.store.whenSynced().then(
      () => this.#changed(secret),
      () => undefined,
    );
  }

  drop(secret: string): void {
    const watched = this.#named.get(secret);
    this.#named.delete(secret);
    watched?.unsubscribe();
    watched?.handle.release();
  }

  /** Except the watch of labeled Secrets. */
  dropAll(): void {
    for (const secret of [...this.#named.keys()]) this.drop(secret);
  }

  /** `pending`: its own watch has not synced, and `labeled` does not have it. */
  get(secret: string): SecretView | undefined | 'pending' {
    const store = this.#named.get(secret)?.handle.store;
    if (store?.synced) return store.get(secret);
    return this.labeled.get(secret) ?? (store ? 'pending' : undefined);
  }
}

export interface SecretView extends CommonView {
  /** In base64, as in the API. */
  readonly data: Readonly<Record<string, string>>;
}

/** Undefined without uid or resourceVersion. */
export function secretView(object: KubeObject): SecretView | undefined {
  const common = commonView(object);
  if (!common) return undefined;
  return { ...common, data: stringMap(own(object, 'data')) };
}

export function textOf({ data }: SecretView, key: string): string | undefined {
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
}

export const dataOf = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
