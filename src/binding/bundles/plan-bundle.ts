import { apiServiceBindingBundles, bindGroup } from '../../api/binding/names.ts';
import type { BindingView, BundleView } from '../stores/consumer-stores.ts';

/** The input of `planBundle`. */
export interface BundleInput {
  readonly bundle: BundleView;
  /** Names of the provider's current exports. */
  readonly exports: ReadonlySet<string>;
  /** All bindings of the consumer, also those without this bundle as owner. */
  readonly bindings: Iterable<BindingView>;
  /** Whether the deletion of the export with this name was observed. */
  readonly isDeleted: (name: string) => boolean;
}

/** The bindings to create, to delete, and to keep. */
export interface BundlePlan {
  /** Names of the bindings to create. */
  readonly create: readonly string[];
  /** Bindings whose export was deleted. A live read must confirm the deletion. */
  readonly delete: readonly BindingView[];
  /** Bindings that stay although the provider has no export of their name, because its deletion was not observed. */
  readonly kept: readonly BindingView[];
}

/**
 * Plans the bindings of a bundle. If an export is only missing from a list, the plan keeps its binding, because a delete of the binding
 * deletes objects in both clusters. The provider may have been restored from a backup, or its CRDs may have been installed again.
 */
export function planBundle({ bundle, exports, bindings, isDeleted }: BundleInput): BundlePlan {
  const existing = [...bindings];
  const existingNames = new Set(existing.map(({ name }) => name));
  const orphans = existing.filter(
    (binding) => !binding.deleting && !exports.has(binding.name) && isOwned(binding, bundle),
  );
  return {
    create: [...exports].filter((name) => !existingNames.has(name)).sort(),
    delete: orphans.filter(({ name }) => isDeleted(name)),
    kept: orphans.filter(({ name }) => !isDeleted(name)),
  };
}

function isOwned({ ownerReferences }: Pick<BindingView, 'ownerReferences'>, { uid }: Pick<BundleView, 'uid'>): boolean {
  return bundleOwners({ ownerReferences }).some((owner) => owner.uid === uid);
}

/** The owners of a binding that are bundles, in any API version. */
export function bundleOwners({
  ownerReferences,
}: Pick<BindingView, 'ownerReferences'>): { name: string; uid: string }[] {
  return ownerReferences.filter(
    ({ apiVersion, kind }) => kind === apiServiceBindingBundles.kind && apiVersion.split('/')[0] === bindGroup,
  );
}
