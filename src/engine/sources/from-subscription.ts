import type { EmitOptions, Source } from '../source.ts';

/** Anything that calls back for what is there, then for each change; the stores of kube/ are. */
export interface Subscribable<Event> {
  subscribe(listener: (event: Event) => void): () => void;
  whenSynced(signal?: AbortSignal): Promise<void>;
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
      await subscribable.whenSynced(signal);
    },
  };
}
