import type { Emit, EmitOptions, Source } from '../source.ts';

/** Such as a store of `src/kube/`. Reports existing objects first, if it knows them. */
export interface Subscribable<Event> {
  subscribe(listener: (event: Event) => void): () => void;
  /** Resolves once all existing objects were reported. If absent, nothing waits for them. */
  whenSynced?(signal?: AbortSignal): Promise<void>;
}

export interface Emission extends EmitOptions {
  readonly key: string;
  /** Default: the name of the source. */
  readonly reason?: string;
}

/** Emits the keys of each event. A plain string is due now. */
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

/** A set whose items have events of their own, such as connections to other clusters. */
export interface ChangingSet<Item> {
  list(): Iterable<Item>;
  /** Calls back when an item may have been added or removed. */
  subscribe(listener: () => void): () => void;
}

/** Emits the keys of the items that are in the set; does not wait until they have synced. */
export function fromEach<Item>(
  name: string,
  items: ChangingSet<Item>,
  /** Returns a function that unsubscribes. */
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
          // Before `follow`: its first events may come during the call, and get here again.
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
