import type { Emit, EmitOptions, Source } from '../source.ts';

/** Reports changes, such as a store of `src/kube/`. If the subscribable knows the existing objects, it first reports each of them. */
export interface Subscribable<Event> {
  /** Returns a function that unsubscribes. */
  subscribe(listener: (event: Event) => void): () => void;
  /** Resolves once all existing objects were reported. Rejects if `signal` aborts first. If absent, the source does not wait for them. */
  whenSynced?(signal?: AbortSignal): Promise<void>;
}

/** A key to emit, with its reason and, as options, its lane and time. */
export interface Emission extends EmitOptions {
  readonly key: string;
  /** Default: the name of the source. */
  readonly reason?: string;
}

/** Emits the keys that `keysOf` derives from each event. A plain string is a key that is due now, with the source's name as its reason. */
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

/** A set that changes, such as the open connections to other clusters. Each of its items has events of its own. */
export interface ChangingSet<Item> {
  list(): Iterable<Item>;
  /** Calls back when an item may have been added or removed; returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
}

/** Emits the keys that `follow` derives from the events of each item while it is in the set. Does not wait until items have synced. */
export function fromEach<Item>(
  name: string,
  items: ChangingSet<Item>,
  /** Subscribes to one item; returns a function that unsubscribes. */
  follow: (item: Item, emit: Emit) => () => void,
): Source {
  return {
    name,
    start(emit, signal) {
      signal.throwIfAborted();
      const followed = new Map<Item, () => void>();
      const followItems = (): void => {
        const current = new Set(items.list());
        for (const [item, unfollow] of followed) {
          if (current.has(item)) continue;
          followed.delete(item);
          unfollow();
        }
        for (const item of current) {
          if (followed.has(item)) continue;
          // Add the item before the call of `follow`: the first events may arrive during that call, and their handlers may call
          // `followItems` again.
          followed.set(item, () => undefined);
          followed.set(item, follow(item, emit));
        }
      };
      const unsubscribe = items.subscribe(followItems);
      signal.addEventListener(
        'abort',
        () => {
          unsubscribe();
          for (const unfollow of followed.values()) unfollow();
        },
        { once: true },
      );
      followItems();
      return Promise.resolve();
    },
  };
}
