import { keyOf } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { ClusterBindingView } from '../stores/views.ts';
import { isAmong, type Rival, type SecretName } from './plan-status.ts';

/** Another konnector that has not been heard of for so long is gone, milliseconds: twice the interval that all of them promise. */
const goneMs = 600_000;

const advice = 'Two clusters that share one kubeconfig disturb each other: bind each on its own';

/**
 * Notices heartbeats that are newer than ours and that we did not write, and a record of a Secret that is not ours. The heartbeat that
 * was there before our first one says nothing.
 */
export class RivalWatch {
  readonly #clock: Clock;
  /** Our newest heartbeat, as it was sent, epoch milliseconds. */
  #sentMs: number | undefined;
  #heardMs: number | undefined;
  /** The foreign Secret that was recorded last, and when it was seen so. */
  #recorded: { readonly secret: SecretName; readonly seenMs: number } | undefined;

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

  /** What there is to say of another konnector, if there is one; `ours` are the Secrets that lead to this ClusterBinding here. */
  look(view: ClusterBindingView, ours: readonly SecretName[]): Rival | undefined {
    return this.#beats(view) ?? this.#record(view, ours);
  }

  #beats({ lastHeartbeatTime }: ClusterBindingView): Rival | undefined {
    const beatMs = lastHeartbeatTime === undefined ? undefined : parseTime(lastHeartbeatTime);
    if (this.#sentMs !== undefined && beatMs !== undefined && beatMs > this.#sentMs)
      this.#heardMs = this.#clock.monotonic();
    if (!this.#isRecent(this.#heardMs)) return undefined;
    return { reason: 'AnotherKonnector', message: `another konnector reports to this ClusterBinding. ${advice}` };
  }

  /** It is replaced by ours with the next heartbeat, and told of a while longer. */
  #record({ consumerSecretRef: secret }: ClusterBindingView, ours: readonly SecretName[]): Rival | undefined {
    if (secret && !isAmong(ours, secret)) this.#recorded = { secret, seenMs: this.#clock.monotonic() };
    const recorded = this.#recorded;
    if (!recorded || isAmong(ours, recorded.secret) || !this.#isRecent(recorded.seenMs)) return undefined;
    return {
      reason: 'ForeignConsumerSecret',
      message: `status.consumerSecretRef named Secret ${keyOf(recorded.secret)}, by which no binding here reaches this provider; the Secret of this cluster takes its place. If it belongs to another cluster, the two share one kubeconfig. ${advice}. If it is one that was replaced here, there is nothing to do`,
    };
  }

  #isRecent(ms: number | undefined): boolean {
    return ms !== undefined && this.#clock.monotonic() - ms <= goneMs;
  }
}
