import type { Clock } from '../../kit/clock.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/views.ts';

/** Exports remembered of one session; those that were asked about longest ago are forgotten first. */
const maxMissing = 1024;

/** Since when exports are missing, and whether they were seen being deleted or were merely not listed any more. */
export class MissingExports {
  readonly #clock: Clock;
  readonly #sessions = new WeakMap<ProviderSession, Map<string, number | 'seen'>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be told every event of the exports of a session. */
  note(session: ProviderSession, event: StoreEvent<ExportView>): void {
    const missing = this.#of(session);
    if (event.type !== 'deleted') missing.delete(event.now.name);
    else this.#set(missing, event.before.name, event.inferred ? this.#clock.monotonic() : 'seen');
  }

  /** An export that has never been seen is missing from now on. */
  of(session: ProviderSession, name: string): number | 'seen' {
    const missing = this.#of(session);
    const since = missing.get(name) ?? this.#clock.monotonic();
    this.#set(missing, name, since);
    return since === 'seen' ? since : this.#clock.monotonic() - since;
  }

  /** Exports may come and go under ever new names. */
  #set(missing: Map<string, number | 'seen'>, name: string, since: number | 'seen'): void {
    missing.delete(name);
    missing.set(name, since);
    if (missing.size <= maxMissing) return;
    for (const oldest of missing.keys()) {
      missing.delete(oldest);
      return;
    }
  }

  #of(session: ProviderSession): Map<string, number | 'seen'> {
    const missing = this.#sessions.get(session) ?? new Map<string, number | 'seen'>();
    this.#sessions.set(session, missing);
    return missing;
  }
}
