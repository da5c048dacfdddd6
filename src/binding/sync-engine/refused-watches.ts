import type { Resource } from '../../api/object.ts';
import type { Store } from '../../kube/store.ts';
import type { RefusedWatch, Side } from './syncer.ts';

export type RefusableWatch = Pick<Store<never>, 'failing' | 'onRefusal'>;

/** Undefined if the watch is allowed, or never was. */
export function refusedWatch(
  side: Side,
  { plural, group }: Resource,
  { failing }: RefusableWatch,
): RefusedWatch | undefined {
  const code = failing?.refused;
  if (code === undefined) return undefined;
  return { side, code, resource: group === '' ? plural : `${plural}.${group}` };
}

/** The provider chooses how many kinds there are. */
const MAX_NAMED = 10;

/** One for each side and code, in a stable order, without text of the API servers. */
export function refusedWatchMessages(refusedWatches: readonly RefusedWatch[]): string[] {
  const resources = new Map<string, Set<string>>();
  for (const { side, code, resource } of refusedWatches) {
    const where = code === 401 ? rejected[side] : forbidden[side];
    resources.set(where, (resources.get(where) ?? new Set()).add(resource));
  }
  return [...Object.values(forbidden), ...Object.values(rejected)].flatMap((where) => {
    const names = [...(resources.get(where) ?? [])].sort();
    const more = names.length - MAX_NAMED;
    const named = [...names.slice(0, MAX_NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
    return names.length > 0 ? [where.replace('KINDS', named)] : [];
  });
}

const forbidden: Readonly<Record<Side, string>> = {
  provider:
    'the provider no longer lets this cluster list and watch KINDS (403); ask the provider to grant these permissions to the user of the kubeconfig again',
  consumer:
    'this cluster no longer lets the konnector list and watch KINDS (403); grant these permissions to its ServiceAccount again',
};
const rejected: Readonly<Record<Side, string>> = {
  provider:
    'the provider no longer lets this cluster list and watch KINDS, because it rejects the credentials (401); ask the provider for a new kubeconfig',
  consumer:
    'this cluster no longer lets the konnector list and watch KINDS, because it rejects the credentials of the konnector (401); check its ServiceAccount',
};
