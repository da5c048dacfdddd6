import { readApiServiceBinding } from '../../api/binding/api-service-binding.ts';
import { readApiServiceBindingBundle } from '../../api/binding/api-service-binding-bundle.ts';
import { apiServiceBindingBundles, apiServiceBindings } from '../../api/binding/names.ts';
import { keyOf } from '../../api/object.ts';
import { customResourceDefinitions, namespaces } from '../../api/resources.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store } from '../../kube/store.ts';
import { type Log, noLog } from '../../observe/log.ts';
import { bindingView, blankBinding, bundleView } from './binding-views.ts';
import { commonView } from './common-view.ts';
import { crdView } from './crd-view.ts';
import { type OpenedStores, openStores } from './open-stores.ts';
import { project } from './project.ts';
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

/** The CRDs of bindings and bundles must be there, or their stores do not sync. */
export function openConsumerStores(cluster: Cluster, log: Log = noLog): OpenedStores<ConsumerStores> {
  return openStores(cluster, (open) => ({
    bindings: open<BindingView>({
      resource: apiServiceBindings,
      project: project(readApiServiceBinding, bindingView, log, blankBinding),
      indexes: { [bySecret]: secretOf },
    }),
    bundles: open<BundleView>({
      resource: apiServiceBindingBundles,
      project: project(readApiServiceBindingBundle, bundleView, log),
      indexes: { [bySecret]: secretOf },
    }),
    namespaces: open({ resource: namespaces, project: commonView }),
    crds: open({ resource: customResourceDefinitions, project: crdView }),
  }));
}

const secretOf = ({ secretRef, unreadable }: BindingView | BundleView): string[] =>
  unreadable === undefined ? [keyOf(secretRef)] : [];
