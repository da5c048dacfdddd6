import type { Clock } from '../../kit/clock.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/views.ts';

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
    else missing.set(event.before.name, event.inferred ? this.#clock.monotonic() : 'seen');
  }

  /** An export that has never been seen is missing from now on. */
  of(session: ProviderSession, name: string): number | 'seen' {
    const missing = this.#of(session);
    const since = missing.get(name) ?? this.#clock.monotonic();
    missing.set(name, since);
    return since === 'seen' ? since : this.#clock.monotonic() - since;
  }

  #of(session: ProviderSession): Map<string, number | 'seen'> {
    const missing = this.#sessions.get(session) ?? new Map<string, number | 'seen'>();
    this.#sessions.set(session, missing);
    return missing;
  }
}
