import type { Emit, EmitOptions, Source } from '../source.ts';

/**
 * A source for hints. A hint is a key that other code of this process passes in, such as an HTTP handler or a callback, because the object of
 * the key may need a reconcile. It carries no decision: the reconciler reads the present state.
 */
export interface HintSource extends Source {
  /**
   * Passes `key` to the queue of the controller that listens. If no controller listens, because this replica is not the leader or is still
   * starting, drops the key and returns false. Another source of the controller must then emit the key at the next start. `reason` is for
   * logs; default: the name of the source.
   */
  hint(key: string, reason?: string, options?: EmitOptions): boolean;
}

/** Creates a HintSource. One controller listens at a time. */
export function hintSource(name: string): HintSource {
  let listener: Emit | undefined;
  return {
    name,
    start(emit, signal) {
      if (signal.aborted) return Promise.resolve();
      listener = emit;
      signal.addEventListener(
        'abort',
        () => {
          if (listener === emit) listener = undefined;
        },
        { once: true },
      );
      return Promise.resolve();
    },
    hint(key, reason = name, options) {
      listener?.(key, reason, options);
      return listener !== undefined;
    },
  };
}
