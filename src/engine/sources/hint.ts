import type { Emit, EmitOptions, Source } from '../source.ts';

/** A source for keys that other code of this process passes to it, such as an HTTP handler or a callback. */
export interface HintSource extends Source {
  /**
   * Emits `key`. Returns false if no controller listens, because this process does not lead or is still starting. It then drops the key,
   * because a controller that starts reconciles everything that exists. `reason`: for logs; default: the name of the source.
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
