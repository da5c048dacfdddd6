import type { Store } from '../../kube/store.ts';
import type { BindingView, BundleView, CrdView, NamespaceView } from './views.ts';

/** What the konnector watches in the consumer cluster all the time. Secrets and bound objects are watched one by one. */
export interface ConsumerStores {
  readonly bindings: Store<BindingView>;
  readonly bundles: Store<BundleView>;
  readonly namespaces: Store<NamespaceView>;
  readonly crds: Store<CrdView>;
}

/** Index of the stores of bindings and bundles: `namespace/name` of the Secret. */
export const bySecret = 'secret';
