import type { Cancel, Clock } from '../../kit/clock.ts';
import { DeadlineHeap } from '../../kit/deadline-heap.ts';
import type { Emit, Source } from '../source.ts';

/** A source that emits each key at the time that other code sets for it. */
export interface DeadlineSource extends Source {
  /**
   * Emits `key` once the wall clock shows `atMs` (epoch ms), or once the monotonic clock has advanced by the time left until then,
   * whichever comes first. Replaces the deadline of the key. If the deadline passes while no controller listens, emits the key when a
   * controller starts.
   */
  set(key: string, atMs: number): void;
  /** Forgets the deadline of the key, if it has one. */
  delete(key: string): void;
}

/** Options of `deadlines`. */
export interface DeadlineOptions {
  readonly name: string;
  readonly clock: Clock;
  /** Lane of the emitted keys; 0 is the most urgent. */
  readonly lane: number;
}

/** Timers do not notice when the wall clock is set forward, so no timer sleeps longer than this while a deadline is pending. */
const WALL_CHECK_MS = 500;

/**
 * A source for keys that must be reconciled at a deadline, whatever earlier reconciles returned: it also emits a key that is in backoff. A
 * deadline stays until its key is emitted, or until it is replaced or deleted.
 */
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
