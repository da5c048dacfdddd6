import { RecentMap } from '../../kit/recent-map.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/provider-stores.ts';

/** Per session; the least recently used one is forgotten first. */
const maxDeleted = 1024;

/**
 * The exports whose deletion was observed, in this session. One that only disappears from a list
 * does not count, unless it was already being deleted.
 */
export class DeletedExports {
  readonly #sessions = new WeakMap<ProviderSession, RecentMap<string, true>>();

  /** Call with every event of the exports of a session. */
  observe(session: ProviderSession, event: StoreEvent<ExportView>): void {
    const deleted = this.#deletedOf(session);
    if (event.type !== 'deleted') deleted.delete(event.now.name);
    // An export that was being deleted when the watch broke, and is gone after the relist.
    else if (!event.inferred || event.before.deleting) deleted.set(event.before.name, true);
  }

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
