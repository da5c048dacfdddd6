import type { Emit, EmitOptions, Source } from '../source.ts';

/** Anything that calls back for each change, and first for what is there if it knows that; the stores of kube/ do. */
export interface Subscribable<Event> {
  /** Returns the unsubscribe. */
  subscribe(listener: (event: Event) => void): () => void;
  /** Resolves when everything that exists has been told. Absent where nothing is to be waited for. */
  whenSynced?(signal?: AbortSignal): Promise<void>;
}

export interface Emission extends EmitOptions {
  readonly key: string;
  /** Default: the name of the source. */
  readonly reason?: string;
}

/** Emits what `keysOf` makes of each event: keys, or keys with a reason, lane or time of their own. */
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

/** Things that come and go, each with events of its own. */
export interface Members<Member> {
  list(): Iterable<Member>;
  /** Calls back when one may have come or gone; returns the unsubscribe. */
  subscribe(listener: () => void): () => void;
}

/** Emits what `follow` makes of the events of each member, from when it comes until it goes. Waits for no member to sync. */
export function fromEach<Member>(
  name: string,
  members: Members<Member>,
  /** Subscribes to one member; returns the unsubscribe. */
  follow: (member: Member, emit: Emit) => () => void,
): Source {
  return {
    name,
    start(emit, signal) {
      signal.throwIfAborted();
      const followed = new Map<Member, () => void>();
      const look = (): void => {
        const present = new Set(members.list());
        for (const [member, leave] of followed) {
          if (present.has(member)) continue;
          followed.delete(member);
          leave();
        }
        for (const member of present) {
          if (followed.has(member)) continue;
          // Its first events may arrive at once, and what they lead to may look again.
          followed.set(member, () => undefined);
          followed.set(member, follow(member, emit));
        }
      };
      const unsubscribe = members.subscribe(look);
      signal.addEventListener(
        'abort',
        () => {
          unsubscribe();
          for (const leave of followed.values()) leave();
        },
        { once: true },
      );
      look();
      return Promise.resolve();
    },
  };
}
