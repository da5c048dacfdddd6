import type { Emit, EmitOptions, Source } from '../source.ts';

/**
 * Keys that other code of this process passes in, such as an HTTP handler, because they may need a
 * reconcile. A hint carries no decision: the reconciler reads the present state.
 */
export interface HintSource extends Source {
  /**
   * False if no controller listens, as before this replica leads: then another source must emit the
   * key at the next start.
   */
  hint(key: string, reason?: string, options?: EmitOptions): boolean;
}

/** One controller listens at a time. */
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
