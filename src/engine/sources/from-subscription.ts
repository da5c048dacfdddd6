import type { Emit, EmitOptions, Source } from '../source.ts';

/** Calls back for each change. If it knows the existing objects, as the stores of kube/ do, it calls back for each of them first. */
export interface Subscribable<Event> {
  /** Returns a function that unsubscribes. */
  subscribe(listener: (event: Event) => void): () => void;
  /** Resolves once it has reported everything that exists. Absent if it reports changes only. */
  whenSynced?(signal?: AbortSignal): Promise<void>;
}

export interface Emission extends EmitOptions {
  readonly key: string;
  /** Default: the name of the source. */
  readonly reason?: string;
}

/** Emits the keys that `keysOf` derives from each event, with a reason, lane, or time of their own if given. */
export function fromSubscription<Event>(
  name: string,
  subscribable: Subscribable<Event>,
  keysOf: (event: Event) => Iterable<string | Emission>,
): Source {
  return {
    name,
    async start(emit, signal) {
      signal.throwIfAborted();
      const unsubscribe = subscribable.subscribe((event) => {
        for (const emission of keysOf(event)) {
          if (typeof emission === 'string') emit(emission, name);
          else emit(emission.key, emission.reason ?? name, emission);
        }
      });
      signal.addEventListener('abort', unsubscribe, { once: true });
      await subscribable.whenSynced?.(signal);
    },
  };
}

/** A set of members that changes; each member has events of its own. */
export interface Members<Member> {
  list(): Iterable<Member>;
  /** Calls back when a member may have been added or removed; returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
}

/** Emits the keys that `follow` derives from the events of each member while it is in the set. Waits for no member to sync. */
export function fromEach<Member>(
  name: string,
  members: Members<Member>,
  /** Subscribes to one member; returns a function that unsubscribes. */
  follow: (member: Member, emit: Emit) => () => void,
): Source {
  return {
    name,
    start(emit, signal) {
      signal.throwIfAborted();
      const followed = new Map<Member, () => void>();
      const followMembers = (): void => {
        const current = new Set(members.list());
        for (const [member, unfollow] of followed) {
          if (current.has(member)) continue;
          followed.delete(member);
          unfollow();
        }
        for (const member of current) {
          if (followed.has(member)) continue;
          // Its first events may arrive synchronously, and their handlers may check the set again.
          followed.set(member, () => undefined);
          followed.set(member, follow(member, emit));
        }
      };
      const unsubscribe = members.subscribe(followMembers);
      signal.addEventListener(
        'abort',
        () => {
          unsubscribe();
          for (const unfollow of followed.values()) unfollow();
        },
        { once: true },
      );
      followMembers();
      return Promise.resolve();
    },
  };
}
