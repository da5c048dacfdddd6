import type { Emit, EmitOptions, Source } from '../source.ts';

/** A source that emits a key when a program calls `hint`. */
export interface HintSource extends Source {
  /**
   * Enqueues `key`. False if no controller listens (standby, or still starting): the key is then dropped, because a starting controller
   * reconciles everything that exists.
   */
  hint(key: string, reason?: string, options?: EmitOptions): boolean;
}

/** Keys from outside the API, such as an HTTP handler or a callback. One controller listens at a time. */
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
