import type { Cancel, Clock } from '../../kit/clock.ts';
import { DeadlineHeap } from '../../kit/deadline-heap.ts';
import type { Emit, Source } from '../source.ts';

/** Emits each key at the time that other code sets for it. */
export interface DeadlineSource extends Source {
  /**
   * Replaces the deadline of the key: `atMs` on the wall clock, or the time left until then on the
   * monotonic clock. If it passes while no controller listens, the next one gets the key.
   */
  set(key: string, atMs: number): void;
  delete(key: string): void;
}

export interface DeadlineOptions {
  readonly name: string;
  readonly clock: Clock;
  /** 0 is the most urgent. */
  readonly lane: number;
}

/** Timers do not notice when the wall clock is set forward. */
const WALL_CHECK_MS = 500;

/** For keys that are due whatever earlier reconciles returned, also in backoff. */
export function deadlines({ name, clock, lane }: DeadlineOptions): DeadlineSource {
  const wall = new DeadlineHeap<string>();
  const monotonic = new DeadlineHeap<string>();
  let emit: Emit | undefined;
  let cancel: Cancel = () => {};

  const emitDue = (): void => {
    for (const key of new Set([...wall.popDue(clock.now()), ...monotonic.popDue(clock.monotonic())])) {
      wall.delete(key);
      monotonic.delete(key);
      emit?.(key, name, { lane });
    }
    setTimer();
  };
  const setTimer = (): void => {
    cancel();
    const next = monotonic.peek();
    if (!emit || !next) return;
    const leftMs = Math.min(next.at - clock.monotonic(), (wall.peek()?.at ?? 0) - clock.now(), WALL_CHECK_MS);
    cancel = clock.schedule(Math.max(0, leftMs), emitDue);
  };

  return {
    name,
    start(listener, signal) {
      signal.throwIfAborted();
      emit = listener;
      signal.addEventListener(
        'abort',
        () => {
          cancel();
          emit = undefined;
        },
        { once: true },
      );
      setTimer();
      return Promise.resolve();
    },
    set(key, atMs) {
      wall.set(key, atMs);
      monotonic.set(key, clock.monotonic() + Math.max(0, atMs - clock.now()));
      setTimer();
    },
    delete(key) {
      wall.delete(key);
      monotonic.delete(key);
    },
  };
}
