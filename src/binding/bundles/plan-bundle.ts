import { apiServiceBindingBundles, bindGroup } from '../../api/binding/names.ts';
import type { BindingView, BundleView } from '../stores/consumer-stores.ts';

export interface BundleInput {
  readonly bundle: BundleView;
  /** Names of the exports that the provider has now. */
  readonly exports: ReadonlySet<string>;
  readonly bindings: Iterable<BindingView>;
  /** Whether the export of that name was seen being deleted. */
  readonly isDeleted: (name: string) => boolean;
}

export interface BundlePlan {
  /** Names of the bindings to create. */
  readonly create: readonly string[];
  /** Bindings whose export was deleted, if a last look confirms it. */
  readonly delete: readonly BindingView[];
  /** Bindings that stay although no export is listed for them: nobody was seen deleting it. */
  readonly held: readonly BindingView[];
}

/**
 * Deleting a binding deletes what was bound through it, in both clusters. A list that an export is missing from (a provider restored
 * from a backup, a kind just installed again, a filter in between) must not set that off.
 */
export function planBundle({ bundle, exports, bindings, isDeleted }: BundleInput): BundlePlan {
  const all = [...bindings];
  const taken = new Set(all.map(({ name }) => name));
  const orphans = all.filter((one) => !one.deleting && !exports.has(one.name) && isOwned(one, bundle));
  return {
    create: [...exports].filter((name) => !taken.has(name)).sort(),
    delete: orphans.filter(({ name }) => isDeleted(name)),
    held: orphans.filter(({ name }) => !isDeleted(name)),
  };
}

function isOwned({ ownerReferences }: Pick<BindingView, 'ownerReferences'>, { uid }: Pick<BundleView, 'uid'>): boolean {
  return bundleOwners({ ownerReferences }).some((owner) => owner.uid === uid);
}

/** The owners of a binding that are bundles, in any version. */
export function bundleOwners({
  ownerReferences,
}: Pick<BindingView, 'ownerReferences'>): { name: string; uid: string }[] {
  return ownerReferences.filter(
    ({ apiVersion, kind }) => kind === apiServiceBindingBundles.kind && apiVersion.split('/')[0] === bindGroup,
  );
}
