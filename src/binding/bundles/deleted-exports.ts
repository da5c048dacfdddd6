import type { StoreEvent } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/provider-stores.ts';

/** Exports remembered of one session; those that were asked about longest ago are forgotten first. */
const maxDeleted = 1024;

/** Which exports were seen being deleted, and are not merely missing from a list. */
export class DeletedExports {
  readonly #sessions = new WeakMap<ProviderSession, Set<string>>();

  /** To be told every event of the exports of a session. */
  note(session: ProviderSession, event: StoreEvent<ExportView>): void {
    const deleted = this.#of(session);
    if (event.type !== 'deleted') deleted.delete(event.now.name);
    // Who is gone when the watch is back was being deleted before it broke off.
    else if (!event.inferred || event.before.deleting) remember(deleted, event.before.name);
  }

  has(session: ProviderSession, name: string): boolean {
    const deleted = this.#of(session);
    if (!deleted.has(name)) return false;
    remember(deleted, name);
    return true;
  }

  #of(session: ProviderSession): Set<string> {
    const deleted = this.#sessions.get(session) ?? new Set<string>();
    this.#sessions.set(session, deleted);
    return deleted;
  }
}

/** Exports may come and go under ever new names. */
function remember(deleted: Set<string>, name: string): void {
  deleted.delete(name);
  deleted.add(name);
  if (deleted.size <= maxDeleted) return;
  for (const oldest of deleted) {
    deleted.delete(oldest);
    return;
  }
}
