import type { Emit, EmitOptions, Source } from '../source.ts';

export interface HintSource extends Source {
  /**
   * Asks for a look at `key`. False when no controller listens (standby, still starting): nothing is kept then, because a controller
   * that starts looks at everything that exists anyway.
   */
  hint(key: string, reason?: string, options?: EmitOptions): boolean;
}

/** Keys from outside of the API: an HTTP handler, a callback. One controller listens at a time. */
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
