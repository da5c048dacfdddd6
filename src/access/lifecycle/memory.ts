import type { RequestChild } from '../../api/access/status.ts';
import type { Clock } from '../../kit/clock.ts';
import type { RequestView } from '../stores/access-views.ts';
import { RequestDeadline } from './request-deadlines.ts';
import type { Cause } from './status.ts';

/** What this process knows of a request beyond the cluster. Losing it repeats calls and reports. */
export class RequestMemory {
  readonly uid: string;
  readonly deadline: RequestDeadline;
  /** As last reconciled. If it vanishes, the server revokes its access from this copy. */
  request: RequestView | undefined;
  /** Why it ends, once its RoleBinding was to go. No later extension revives it. */
  cause: Cause | undefined;
  /** Children that this process created or adopted, until the status lists them. `atMs`: epoch ms. */
  opened: { readonly children: readonly RequestChild[]; readonly atMs: number } | undefined;
  /** The grant is in the journal, and the last such extension, so that a retry adds no second line. */
  grantJournaled = false;
  extensionJournaled: string | undefined;
  /** The generation of the template whose permissions the requester already held. Saves reviews. */
  heldAtGeneration: number | undefined;
  /** Or emptied of subjects; with `childrenDeleted`, all others are deleted, too. */
  roleBindingDeleted = false;
  childrenDeleted = false;
  /** A store that lags behind still shows the finalizer, or the request. */
  finalizerRemoved = false;
  requestDeleted = false;
  /** It has ended, and the next reconcile deletes it, in the cleanup lane. */
  removalQueued = false;
  /** It has ended, and is within the maximum (`History.surplus`), unless others push it out. */
  withinMaximum = false;

  constructor(uid: string, clock: Clock) {
    this.uid = uid;
    this.deadline = new RequestDeadline(clock);
  }
}

/** One for each request of a kind, until it vanishes. */
export class Memories {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, RequestMemory>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(request: Pick<RequestView, 'key' | 'uid'>): RequestMemory {
    const memory = this.find(request) ?? new RequestMemory(request.uid, this.#clock);
    this.#byKey.set(request.key, memory);
    return memory;
  }

  find({ key, uid }: Pick<RequestView, 'key' | 'uid'>): RequestMemory | undefined {
    const memory = this.#byKey.get(key);
    return memory?.uid === uid ? memory : undefined;
  }

  /** The request of the key, if it has another uid or none any more. */
  vanished(key: string, uid: string | undefined): RequestView | undefined {
    const memory = this.#byKey.get(key);
    return memory?.uid === uid ? undefined : memory?.request;
  }

  forget(key: string): void {
    this.#byKey.delete(key);
  }
}
