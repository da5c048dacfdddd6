import { type Clock, parseTime } from '../../kit/clock.ts';
import type { ClusterBindingView } from '../stores/views.ts';

/** Another konnector that has not been heard of for so long is gone, milliseconds: twice the interval that all of them promise. */
const goneMs = 600_000;

/** Notices heartbeats that are newer than ours and that we did not write. What was there before our first one says nothing. */
export class RivalWatch {
  readonly #clock: Clock;
  /** Our newest heartbeat, as it was sent, epoch milliseconds. */
  #sentMs: number | undefined;
  #heardMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be told before the heartbeat is sent, because it may come back before the answer does. */
  sending(heartbeat: string): void {
    this.#sentMs = parseTime(heartbeat);
  }

  /** Heartbeats of our own may now look like those of another. */
  reset(): void {
    this.#sentMs = undefined;
  }

  /** What there is to say of another konnector, if there is one. */
  look(view: ClusterBindingView): string | undefined {
    const beatMs = view.lastHeartbeatTime === undefined ? undefined : parseTime(view.lastHeartbeatTime);
    if (this.#sentMs !== undefined && beatMs !== undefined && beatMs > this.#sentMs)
      this.#heardMs = this.#clock.monotonic();
    if (this.#heardMs === undefined || this.#clock.monotonic() - this.#heardMs > goneMs) return undefined;
    return 'another konnector reports to this ClusterBinding; two clusters that share one kubeconfig disturb each other, bind each on its own';
  }
}
