import { jittered } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';

export interface SweepDeps<Item> {
  readonly all: () => Iterable<Item>;
  readonly look: (item: Item) => void;
  /** Everything is going to be looked at. */
  readonly begins: () => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

const everyMs = 1_800_000;
const jitter = 0.1;
/** So many at a time, and then a pause: nobody is to notice. */
const slice = { items: 50, pauseMs: 50 };

/** Looks at everything every half hour, until the signal aborts: events are quick, but what is certain is what is there. */
export function sweep<Item>(deps: SweepDeps<Item>, signal: AbortSignal): void {
  const { all, look, begins, clock, random } = deps;
  let cancel: Cancel = () => {};
  const later = (): void => {
    cancel = clock.schedule(jittered(everyMs, jitter, random), () => {
      begins();
      go([...all()]);
    });
  };
  const go = (items: Item[]): void => {
    for (const item of items.splice(0, slice.items)) look(item);
    if (items.length === 0) later();
    else cancel = clock.schedule(slice.pauseMs, () => go(items));
  };
  if (signal.aborted) return;
  later();
  signal.addEventListener('abort', () => cancel(), { once: true });
}
