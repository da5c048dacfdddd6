import type { KubeObject, Resource } from '../../api/object.ts';
import type { OpenCluster } from '../../kube/open-cluster.ts';
import type { Projected, StoreHandle } from '../../kube/store.ts';

export interface StoredRow<R> extends Projected {
  readonly row: R;
  /** The request, if it waits for a decision. */
  readonly waiting?: KubeObject | undefined;
}

/** The rows of one kind, and what the page does not know yet. */
export interface FollowedRows<R> extends StoreHandle<StoredRow<R>> {
  /** By the key of the row; undefined if it is gone. A later change replaces an earlier one. */
  readonly changes: Map<string, StoredRow<R> | undefined>;
}

export interface FollowOptions<R> {
  readonly cluster: Pick<OpenCluster, 'watch'>;
  readonly resource: Resource;
  readonly scope: { readonly namespace?: string };
  readonly toRow: (object: KubeObject) => Pick<StoredRow<R>, 'row' | 'waiting'>;
  readonly signal: AbortSignal;
  /** `changes` has grown. */
  readonly changed: () => void;
}

/** Watches a kind. Its rows are in `changes` as the pages of the first list arrive. */
export function followRows<R extends { readonly key: string }>({
  cluster,
  resource,
  scope,
  toRow,
  signal,
  changed,
}: FollowOptions<R>): FollowedRows<R> {
  const changes = new Map<string, StoredRow<R> | undefined>();
  const change = (key: string, stored: StoredRow<R> | undefined): void => {
    changes.set(key, stored);
    changed();
  };
  /** Of the first list, until it is complete: the store shows it only then. */
  let early: Map<string, StoredRow<R>> | undefined = new Map();
  // A function of this page alone, so that no other page shares the store.
  const project = (object: KubeObject): StoredRow<R> => {
    const { uid = '', resourceVersion = '' } = object.metadata;
    const { row, waiting } = toRow(object);
    const stored = { key: row.key, uid, resourceVersion, row, waiting };
    if (early) {
      early.set(row.key, stored);
      change(row.key, stored);
    }
    return stored;
  };
  const handle = cluster.watch({ resource, ...scope, project });
  const onSynced = (): void => {
    const before = early;
    early = undefined;
    handle.store.subscribe((event) => {
      if (event.type === 'deleted') change(event.before.row.key, undefined);
      else if (before?.get(event.now.row.key) !== event.now) change(event.now.row.key, event.now);
    });
    // The list began anew, and an object was gone by then.
    const existing = new Set([...handle.store.list()].map(({ row }) => row.key));
    for (const key of before?.keys() ?? []) if (!existing.has(key)) change(key, undefined);
  };
  // It rejects only once the page has left.
  handle.store.whenSynced(signal).then(onSynced, () => undefined);
  return { ...handle, changes };
}

/** Takes the next `count` changes. */
export function takeChanges<R>(
  { changes }: FollowedRows<R>,
  count: number,
): { readonly stored: readonly StoredRow<R>[]; readonly removed: readonly string[] } {
  const taken = [...changes].slice(0, count);
  for (const [key] of taken) changes.delete(key);
  return {
    stored: taken.flatMap(([, stored]) => stored ?? []),
    removed: taken.flatMap(([key, stored]) => (stored ? [] : [key])),
  };
}
