import type { Clock } from '../../kit/clock.ts';

export interface Gathered {
  /** Calls back a little later, once for all that happens until then. */
  soon(): void;
  stop(): void;
}

/** So that a callback hears of many changes at once. */
export function gathered(clock: Clock, withinMs: number, callback: () => void): Gathered {
  let cancel: (() => void) | undefined;
  return {
    soon() {
      cancel ??= clock.schedule(withinMs, () => {
        cancel = undefined;
        callback();
      });
    },
    stop() {
      cancel?.();
      cancel = undefined;
    },
  };
}
