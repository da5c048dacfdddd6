import { apiServiceBindingBundles, bindGroup } from '../../api/binding/names.ts';
import type { BindingView, BundleView } from '../stores/consumer-stores.ts';

export interface BundleInput {
  readonly bundle: BundleView;
  readonly exports: ReadonlySet<string>;
  /** All bindings of the consumer, also those without this bundle as owner. */
  readonly bindings: Iterable<BindingView>;
  readonly isDeleted: (name: string) => boolean;
}

export interface BundlePlan {
  readonly create: readonly string[];
  /** A live read must confirm the deletion of their export. */
  readonly delete: readonly BindingView[];
  /** Their export is missing, but its deletion was not observed. */
  readonly kept: readonly BindingView[];
}

/**
 * Plans the bindings of a bundle. An export that is only missing from a list, as after a restore of
 * the provider, keeps its binding: the delete would delete objects in both clusters.
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

/** In any API version. */
export function bundleOwners({
  ownerReferences,
}: Pick<BindingView, 'ownerReferences'>): { name: string; uid: string }[] {
  return ownerReferences.filter(
    ({ apiVersion, kind }) => kind === apiServiceBindingBundles.kind && apiVersion.split('/')[0] === bindGroup,
  );
}
