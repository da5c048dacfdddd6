import type { Clock } from '../../kit/clock.ts';
import type { Source } from '../source.ts';

export interface IntervalOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Without jitter. */
  readonly everyMs: number;
  /** Must not throw. */
  readonly keys: () => Iterable<string>;
  /** Share of the interval that a round may be late, so that replicas spread out. Default 0.1. */
  readonly jitter?: number;
  /** Uniform in [0, 1). */
  readonly random?: () => number;
}

/** Emits its keys at start, and again `everyMs` plus jitter after each round. */
export function interval(options: IntervalOptions): Source {
  const { name, clock, everyMs, keys, jitter = 0.1, random = Math.random } = options;
  return {
    name,
    start(emit, signal) {
      const round = (): void => {
        if (signal.aborted) return;
        const cancel = clock.schedule(everyMs * (1 + jitter * random()), () => {
          signal.removeEventListener('abort', cancel);
          round();
        });
        signal.addEventListener('abort', cancel, { once: true });
        for (const key of keys()) emit(key, name);
      };
      round();
      return Promise.resolve();
    },
  };
}
