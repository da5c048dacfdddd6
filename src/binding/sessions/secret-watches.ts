import { kubeconfigNamespace, providerKubeconfigLabel } from '../../api/binding/names.ts';
import { type KubeObject, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { own, stringMap } from '../../kit/json-value.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store, StoreHandle } from '../../kube/store.ts';
import { type CommonView, commonView } from '../stores/common-view.ts';

/**
 * The Secrets of the consumer that the konnector has to see and no others: each that a binding or bundle names, by a watch of its
 * own, anywhere, and those that carry the label, where kubectl bind puts them: no right to read Secrets elsewhere is needed.
 */
export class SecretWatches {
  readonly labelled: Store<SecretView>;
  readonly #consumer: Cluster;
  readonly #changed: (secret: string) => void;
  readonly #named = new Map<string, { readonly handle: StoreHandle<SecretView>; readonly unsubscribe: () => void }>();

  /** `changed` is told `namespace/name` of a watched Secret whenever `look` may answer differently. */
  constructor(consumer: Cluster, changed: (secret: string) => void) {
    this.#consumer = consumer;
    this.#changed = changed;
    const labelSelector = `${providerKubeconfigLabel}=true`;
    const namespace = kubeconfigNamespace;
    this.labelled = consumer.watch({ resource: secrets, namespace, labelSelector, project: secretView }).store;
  }

  /** Watches the Secret (`namespace/name`) until `drop`; calling it again does nothing. */
  watch(secret: string): void {
    if (this.#named.has(secret)) return;
    const { namespace = '', name } = nameOf(secret);
    const fieldSelector = `metadata.name=${name}`;
    const handle = this.#consumer.watch({ resource: secrets, namespace, fieldSelector, project: secretView });
    const unsubscribe = handle.store.subscribe(() => this.#changed(secret));
    this.#named.set(secret, { handle, unsubscribe });
    // No event tells that there is no such Secret.
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

  dropAll(): void {
    for (const secret of [...this.#named.keys()]) this.drop(secret);
  }

  /** The Secret, if there is one; `pending` while that is not known. */
  get(secret: string): SecretView | undefined | 'pending' {
    const store = this.#named.get(secret)?.handle.store;
    if (store?.synced) return store.get(secret);
    return this.labelled.get(secret) ?? (store ? 'pending' : undefined);
  }
}

/** A kubeconfig Secret of either cluster. */
export interface SecretView extends CommonView {
  /** Base64, as the API gives it. */
  readonly data: Readonly<Record<string, string>>;
}

export function secretView(object: KubeObject): SecretView | undefined {
  const common = commonView(object);
  if (!common) return undefined;
  return { ...common, data: stringMap(own(object, 'data')) };
}

/** What a key of the Secret holds, as text; undefined when it has no such key. */
export function textOf({ data }: SecretView, key: string): string | undefined {
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
}

export const dataOf = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
