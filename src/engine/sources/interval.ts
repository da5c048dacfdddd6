import type { Clock } from '../../kit/clock.ts';
import type { Source } from '../source.ts';

export interface IntervalOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Without jitter. */
  readonly everyMs: number;
  /** Must not throw. */
  readonly keys: () => Iterable<string>;
  /** Uniform in [0, 1), for the delay of a round by up to a tenth, so that replicas spread out. */
  readonly random?: () => number;
}

/** Emits its keys at start, and again `everyMs` plus jitter after each round. */
export function interval(options: IntervalOptions): Source {
  const { name, clock, everyMs, keys, random = Math.random } = options;
  return {
    name,
    start(emit, signal) {
      const round = (): void => {
        if (signal.aborted) return;
        const cancel = clock.schedule(everyMs * (1 + random() / 10), () => {
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
