import type { Clock } from '../../kit/clock.ts';
import type { Source } from '../source.ts';

/** Options of `interval`. */
export interface IntervalOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Time between two rounds without jitter, milliseconds. */
  readonly everyMs: number;
  /** Returns the keys of a round. Must not throw. */
  readonly keys: () => Iterable<string>;
  /** Share of the interval by which a round may be delayed, so that replicas and controllers spread out. Default 0.1. */
  readonly jitter?: number;
  /** Uniform in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

/** Emits its keys at start, and then again `everyMs`, plus jitter, after each round. */
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
