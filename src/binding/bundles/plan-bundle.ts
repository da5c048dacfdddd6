import { apiServiceBindingBundles, bindGroup } from '../../api/binding/names.ts';
import type { BindingView, BundleView } from '../stores/views.ts';

/** How long an export has to be missing from lists before it counts as deleted, when nobody was seen deleting it; milliseconds. */
export const settleMs = 60_000;

export interface BundleInput {
  readonly bundle: BundleView;
  /** Names of the exports that the provider has now. */
  readonly exports: ReadonlySet<string>;
  readonly bindings: Iterable<BindingView>;
  /** How long the export of that name has been missing, milliseconds; `seen` when its deletion was watched. */
  readonly missing: (name: string) => number | 'seen';
}

export interface BundlePlan {
  /** Names of the bindings to create. */
  readonly create: readonly string[];
  /** Bindings whose export is gone, if a last look confirms it. */
  readonly delete: readonly BindingView[];
  /** Bindings whose export may come back. */
  readonly waiting: readonly BindingView[];
  /** Bindings that stay although no export is listed for them: everything vanished at once and nobody was seen deleting it. */
  readonly held: readonly BindingView[];
  /** When to look again at those that wait, milliseconds. */
  readonly againInMs?: number;
}

/**
 * Deleting a binding deletes what was bound through it, in both clusters. A list that suddenly comes back empty (a provider restored
 * from a backup, a kind just installed again, a filter in between) must not set that off.
 */
export function planBundle({ bundle, exports, bindings, missing }: BundleInput): BundlePlan {
  const all = [...bindings];
  const taken = new Set(all.map(({ name }) => name));
  const create = [...exports].filter((name) => !taken.has(name)).sort();
  const orphans = all.filter((one) => !one.deleting && !exports.has(one.name) && isOwned(one, bundle));
  const seen = orphans.filter(({ name }) => missing(name) === 'seen');
  const unseen = orphans.filter(({ name }) => missing(name) !== 'seen');
  if (exports.size === 0) return { create, delete: seen, waiting: [], held: unseen };
  const leftMs = ({ name }: BindingView): number => {
    const sinceMs = missing(name);
    return sinceMs === 'seen' ? 0 : Math.max(0, settleMs - sinceMs);
  };
  const waiting = unseen.filter((binding) => leftMs(binding) > 0);
  return {
    create,
    delete: [...seen, ...unseen.filter((binding) => leftMs(binding) === 0)],
    waiting,
    held: [],
    ...(waiting.length > 0 ? { againInMs: Math.min(...waiting.map(leftMs)) } : {}),
  };
}

export function isOwned(
  { ownerReferences }: Pick<BindingView, 'ownerReferences'>,
  { uid }: Pick<BundleView, 'uid'>,
): boolean {
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
