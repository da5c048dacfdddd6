import { RecentMap } from '../../kit/recent-map.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/provider-stores.ts';

/** Maximum number of deleted exports that are remembered for one session. If there are more, the least recently used one is forgotten. */
const maxDeleted = 1024;

/**
 * The exports whose deletion was observed. The deletion of an export that only disappears from a list was not observed, unless the export
 * was already being deleted. The memory is lost with the session, so after a restart an earlier deletion counts as not observed.
 */
export class DeletedExports {
  readonly #sessions = new WeakMap<ProviderSession, RecentMap<string, true>>();

  /** Call with every event of the exports of a session. */
  observe(session: ProviderSession, event: StoreEvent<ExportView>): void {
    const deleted = this.#deletedOf(session);
    if (event.type !== 'deleted') deleted.delete(event.now.name);
    // If the export was already being deleted when the watch broke, its absence after the relist proves the deletion.
    else if (!event.inferred || event.before.deleting) deleted.set(event.before.name, true);
  }

  /** Whether the deletion of the export was observed, and the export was not created again. */
  has(session: ProviderSession, name: string): boolean {
    const deleted = this.#deletedOf(session);
    if (!deleted.has(name)) return false;
    deleted.set(name, true);
    return true;
  }

  #deletedOf(session: ProviderSession): RecentMap<string, true> {
    const deleted = this.#sessions.get(session) ?? new RecentMap<string, true>(maxDeleted);
    this.#sessions.set(session, deleted);
    return deleted;
  }
}
