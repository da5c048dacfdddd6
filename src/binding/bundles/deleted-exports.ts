import { RecentMap } from '../../kit/recent-map.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/provider-stores.ts';

/** Exports remembered of one session, which may come and go under ever new names; those asked about longest ago are forgotten first. */
const maxDeleted = 1024;

/** Which exports were seen being deleted, and are not merely missing from a list. */
export class DeletedExports {
  readonly #sessions = new WeakMap<ProviderSession, RecentMap<string, true>>();

  /** To be told every event of the exports of a session. */
  note(session: ProviderSession, event: StoreEvent<ExportView>): void {
    const deleted = this.#of(session);
    if (event.type !== 'deleted') deleted.delete(event.now.name);
    // Who is gone when the watch is back was being deleted before it broke off.
    else if (!event.inferred || event.before.deleting) deleted.set(event.before.name, true);
  }

  has(session: ProviderSession, name: string): boolean {
    const deleted = this.#of(session);
    if (!deleted.has(name)) return false;
    deleted.set(name, true);
    return true;
  }

  #of(session: ProviderSession): RecentMap<string, true> {
    const deleted = this.#sessions.get(session) ?? new RecentMap<string, true>(maxDeleted);
    this.#sessions.set(session, deleted);
    return deleted;
  }
}
