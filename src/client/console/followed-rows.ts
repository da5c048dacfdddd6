import type { KubeObject, Resource } from '../../api/object.ts';
import type { Projected, StoreHandle } from '../../kube/store.ts';
import type { ClusterConnection } from '../cluster-connection.ts';

interface StoredRow<R> extends Projected {
  readonly row: R;
  /** The request, if it waits for a decision. */
  readonly waiting?: KubeObject | undefined;
}

/** The rows of one kind. */
export interface FollowedRows<R> extends StoreHandle<StoredRow<R>> {
  /** What the page does not know yet, by the key of the row; undefined if it is gone. */
  readonly changes: Map<string, StoredRow<R> | undefined>;
}

export interface FollowOptions {
  readonly connection: Pick<ClusterConnection, 'cluster'>;
  readonly scope: { readonly namespace?: string };
  readonly signal: AbortSignal;
}

/** Watches a kind. Its rows are in `changes` as the pages of the first list arrive. */
export function followRows<R extends { readonly key: string }>(
  { connection, scope, signal }: FollowOptions,
  resource: Resource,
  toRow: (object: KubeObject) => Pick<StoredRow<R>, 'row' | 'waiting'>,
  onChange: () => void,
): FollowedRows<R> {
  const changes = new Map<string, StoredRow<R> | undefined>();
  const change = (key: string, stored: StoredRow<R> | undefined): void => {
    changes.set(key, stored);
    onChange();
  };
  /** Of the first list, until it is complete: the store shows it only then. */
  let early: Map<string, StoredRow<R>> | undefined = new Map();
  // A function of this page alone, so that no other page shares the store.
  const project = (object: KubeObject): StoredRow<R> => {
    const { uid = '', resourceVersion = '' } = object.metadata;
    const { row, waiting } = toRow(object);
    const stored = { key: row.key, uid, resourceVersion, row, waiting };
    if (early?.set(row.key, stored)) change(row.key, stored);
    return stored;
  };
  const handle = connection.cluster.watch({ resource, ...scope, project });
  const onSynced = (): void => {
    const before = early;
    early = undefined;
    const existing = new Set<string>();
    handle.store.subscribe((event) => {
      const { key } = (event.type === 'deleted' ? event.before : event.now).row;
      existing.add(key);
      if (event.type === 'deleted') change(key, undefined);
      else if (before?.get(key) !== event.now) change(key, event.now);
    });
    // An object was gone when the list began anew.
    for (const key of before?.keys() ?? []) if (!existing.has(key)) change(key, undefined);
  };
  // It rejects only once the page has left.
  handle.store.whenSynced(signal).then(onSynced, () => undefined);
  return { ...handle, changes };
}
