// This process leads while it holds a Lease; compatible with the leader election of client-go.
//
//   acquire ── Lease free, expired, or of a replaced account ──> lead ── work ends ──> release
//      ^                                                          │
//      └──── another holder, or no proof of renewal in time ──────┘
//
// Time is this process's own monotonic clock; timestamps in the Lease are for people only.

import { type KubeObject, keyOf, type ObjectName } from '../api/object.ts';
import { leases } from '../api/resources.ts';
import type { LeaderGate } from '../engine/leader-gate.ts';
import { type Cancel, type Clock, sleep } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { unlessAborted } from '../kit/promises.ts';
import type { Client } from './client.ts';
import type { Cluster } from './cluster.ts';
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import { CallLimit } from './json-call.ts';
import { claimLease, readLease, releaseLease, sameVersion } from './lease-record.ts';
import { type KubeLog, silentLog } from './log.ts';
import { replaces, type ServiceAccountId } from './service-account.ts';
import type { Projected, StoreEvent } from './store.ts';

/** The times are those of client-go. */
export interface LeaseGateOptions {
  readonly cluster: Pick<Cluster, 'client' | 'watch'>;
  readonly name: string;
  readonly namespace: string;
  /** Unique among the replicas. */
  readonly identity: string;
  readonly clock: Clock;
  /**
   * The ServiceAccount of this process. If it replaced the holder's, the holder is gone: Helm, for
   * example, deletes permissions before Pods, which then cannot release the Lease.
   */
  readonly account?: () => Promise<ServiceAccountId | undefined>;
  /** Without renewal; then another process may take over. Default 15 000. */
  readonly leaseDurationMs?: number;
  /** Without proof of renewal; then this process stops leading. Default 10 000. */
  readonly renewDeadlineMs?: number;
  /** Between two attempts, plus up to 20% jitter. Default 2 000. */
  readonly retryPeriodMs?: number;
  readonly log?: KubeLog;
  /** Uniform in [0, 1), for jitter. Default Math.random. */
  readonly random?: () => number;
}

export interface LeaseGate extends LeaderGate {
  /**
   * Its writes reject with CodedError `NotLeading`. Every attempt compares the clock: after a
   * freeze, timers run late. What was sent before it has its resource version and uid.
   */
  requireLeader(client: Client): Client;
}

/** Throws CodedError `InvalidLeaseTimes` unless 1.2 × retry period < renew deadline < duration. */
export function leaseGate(options: LeaseGateOptions): LeaseGate {
  return new LeaseCampaign(options);
}

/** Without the fields that a standby does not need. */
interface LeaseView extends Projected {
  readonly lease: KubeObject;
}

function viewLease({ apiVersion, kind, metadata, spec }: KubeObject): LeaseView {
  const { name, namespace, uid = '', resourceVersion = '', annotations = {} } = metadata;
  const lease = {
    apiVersion,
    kind,
    metadata: { name, ...(namespace ? { namespace } : {}), uid, resourceVersion, annotations },
    spec,
  };
  return { key: keyOf(metadata), uid, resourceVersion, lease };
}

class LeaseCampaign implements LeaseGate {
  readonly name: string;
  readonly #cluster: Pick<Cluster, 'watch'>;
  readonly #client: Client;
  readonly #lease: Required<ObjectName>;
  readonly #identity: string;
  readonly #clock: Clock;
  readonly #readAccount: () => Promise<ServiceAccountId | undefined>;
  /** Read at the last attempt. */
  #account: ServiceAccountId | undefined;
  readonly #durationMs: number;
  readonly #deadlineMs: number;
  readonly #retryMs: number;
  readonly #log: KubeLog;
  readonly #random: () => number;
  /** As last read, seen, or written; not set if it does not exist or must be read again. */
  #lastRead: KubeObject | undefined;
  /** When this process first saw the version of `#lastRead`; monotonic. */
  #lastReadAtMs = 0;
  /** Until then, the last write proves that no other process may lead; monotonic. */
  #provedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: LeaseGateOptions) {
    this.name = options.name;
    this.#cluster = options.cluster;
    this.#client = options.cluster.client.urgent();
    this.#lease = { namespace: options.namespace, name: options.name };
    this.#identity = options.identity;
    this.#clock = options.clock;
    this.#readAccount = options.account ?? (() => Promise.resolve(undefined));
    this.#durationMs = options.leaseDurationMs ?? 15_000;
    this.#deadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    this.#log = options.log ?? silentLog;
    this.#random = options.random ?? Math.random;
    if (!(this.#retryMs * 1.2 < this.#deadlineMs && this.#deadlineMs < this.#durationMs)) {
      throw new CodedError(
        'InvalidLeaseTimes',
        `Lease ${this.name} has the retry period ${this.#retryMs} ms, the renew deadline ${this.#deadlineMs} ms, and the lease duration ${this.#durationMs} ms; ` +
          'required is 1.2 × retry period < renew deadline < lease duration; correct these options',
      );
    }
  }

  get leading(): boolean {
    return this.#clock.monotonic() < this.#provedUntilMs;
  }

  requireLeader(client: Client): Client {
    return client.leaderOnly(() => {
      if (!this.leading) throw notLeading(this.name);
    });
  }

  async run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (await this.#acquire(signal)) {
      this.#log.info('this replica leads', { lease: this.name, identity: this.#identity });
      if ((await this.#lead(lead, signal)) === 'done') return;
      this.#log.warn(
        'no longer leading; this replica has stopped the work of the leader, and tries to acquire the Lease again',
        { lease: this.name, identity: this.#identity },
      );
    }
  }

  /** True once this process holds the Lease, false when `signal` aborts. */
  async #acquire(signal: AbortSignal): Promise<boolean> {
    if (await this.#tryClaim(signal)) return true;
    let turn = new AbortController();
    const { name, namespace } = this.#lease;
    const fieldSelector = `metadata.name=${name}`;
    const { store, release } = this.#cluster.watch({ resource: leases, namespace, fieldSelector, project: viewLease });
    const unsubscribe = store.subscribe((event) => {
      this.#onEvent(event);
      if (!this.#heldByOther()) turn.abort();
    });
    const onStop = (): void => turn.abort();
    signal.addEventListener('abort', onStop);
    try {
      while (!signal.aborted) {
        await this.#waitForTurn(turn.signal);
        // Before the attempt, so that a release that the watch shows meanwhile is not missed.
        turn = new AbortController();
        if (!signal.aborted && (await this.#tryClaim(signal))) return true;
      }
      return false;
    } finally {
      signal.removeEventListener('abort', onStop);
      unsubscribe();
      release();
    }
  }

  /** Only says when to try: each attempt reads first, so a dead watch makes no two leaders. */
  #onEvent(event: StoreEvent<LeaseView>): void {
    this.#lastRead = event.type === 'deleted' ? undefined : event.now.lease;
    this.#lastReadAtMs = this.#clock.monotonic();
  }

  /** Until the Lease of another expires, or for one retry period. Ends early when `turn` aborts. */
  async #waitForTurn(turn: AbortSignal): Promise<void> {
    do {
      const delayMs = this.#heldByOther()
        ? Math.max(50, this.#heldUntilMs() - this.#clock.monotonic())
        : this.#jittered();
      await sleep(this.#clock, delayMs, turn).catch(() => undefined);
    } while (!turn.aborted && this.#heldByOther());
  }

  /** Renews until `lead` settles. `lost`: the Lease was lost before that. */
  async #lead(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<'done' | 'lost'> {
    const leadership = new AbortController();
    const settled = new AbortController();
    const onStop = (): void => leadership.abort(signal.reason);
    signal.addEventListener('abort', onStop, { once: true });
    if (signal.aborted) onStop();
    const renewing = this.#renew(settled.signal, () => leadership.abort(notLeading(this.name)));
    try {
      // Also catches an error that `lead` throws synchronously.
      await (async () => lead(leadership.signal))();
    } catch (error) {
      if (!leadership.signal.aborted) throw error;
      this.#log.debug('the work of the leader rejected after its signal aborted', {
        lease: this.name,
        error: describe(error),
      });
    } finally {
      settled.abort();
      signal.removeEventListener('abort', onStop);
      if ((await renewing) === 'held') await this.#release();
    }
    return (await renewing) === 'held' ? 'done' : 'lost';
  }

  /** Renews until `settled` aborts (`held`). On a loss (`lost`), `onLost` must abort the work. */
  async #renew(settled: AbortSignal, onLost: () => void): Promise<'held' | 'lost'> {
    const stop = new AbortController();
    let outcome: 'held' | 'lost' = 'held';
    let cancelExpiry: Cancel = () => {};
    const lose = (): void => {
      if (stop.signal.aborted) return;
      outcome = 'lost';
      onLost();
      stop.abort();
    };
    const watchExpiry = (): void => {
      cancelExpiry();
      cancelExpiry = this.#clock.schedule(this.#provedUntilMs - this.#clock.monotonic(), lose);
    };
    const onSettled = (): void => stop.abort();
    settled.addEventListener('abort', onSettled, { once: true });
    if (settled.aborted) onSettled();
    watchExpiry();
    while (!stop.signal.aborted) {
      await sleep(this.#clock, this.#jittered(), stop.signal).catch(() => undefined);
      if (stop.signal.aborted) break;
      if (!this.leading) lose();
      else if (await this.#tryClaim(stop.signal)) watchExpiry();
      else if (this.#heldByOther()) lose();
    }
    cancelExpiry();
    settled.removeEventListener('abort', onSettled);
    if (!this.leading) outcome = 'lost';
    if (outcome === 'lost') this.#provedUntilMs = Number.NEGATIVE_INFINITY;
    return outcome;
  }

  /**
   * Never rejects. `#provedUntilMs` counts from before the request, to pass before others may lead.
   */
  async #tryClaim(signal: AbortSignal): Promise<boolean> {
    const attempt = this.#attempt(signal);
    try {
      return await this.#claim(attempt.signal);
    } catch (error) {
      if (!signal.aborted) {
        // Changed or deleted, perhaps by a late request of this process: read it first next time.
        if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) this.#lastRead = undefined;
        else
          this.#log.warn('a request to acquire or renew the Lease failed; this replica tries again', {
            lease: this.name,
            error: describe(error),
          });
      }
      return false;
    } finally {
      attempt.release();
    }
  }

  async #claim(signal: AbortSignal): Promise<boolean> {
    this.#account = await unlessAborted(this.#readAccount(), signal);
    // A leader replaces the Lease as it wrote it last; a standby reads it first.
    if (!this.leading || !this.#lastRead) await this.#read(signal);
    if (this.#heldByOther()) return false;
    const sentAtMs = this.#clock.monotonic();
    const before = this.#lastRead;
    const claim = claimLease({
      name: this.#lease,
      holder: this.#identity,
      account: this.#account,
      durationMs: this.#durationMs,
      nowMs: this.#clock.now(),
      before,
    });
    const written = await (before
      ? this.#client.replace(leases, claim, { signal })
      : this.#client.create(leases, claim, { signal }));
    this.#lastRead = written;
    this.#lastReadAtMs = sentAtMs;
    this.#provedUntilMs = sentAtMs + this.#deadlineMs;
    return true;
  }

  async #read(signal: AbortSignal): Promise<void> {
    try {
      const lease = await this.#client.get(leases, this.#lease, { signal });
      if (!sameVersion(this.#lastRead, lease)) this.#lastReadAtMs = this.#clock.monotonic();
      this.#lastRead = lease;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#lastRead = undefined;
    }
  }

  /** By the Lease as last read, whose time has not passed. */
  #heldByOther(): boolean {
    if (!this.#lastRead) return false;
    const { holder, account } = readLease(this.#lastRead);
    if (this.#account && account && replaces(this.#account, account)) return false;
    return holder !== '' && holder !== this.#identity && this.#clock.monotonic() < this.#heldUntilMs();
  }

  #heldUntilMs(): number {
    const seconds = this.#lastRead && readLease(this.#lastRead).durationSeconds;
    return this.#lastReadAtMs + (seconds === undefined ? this.#durationMs : seconds * 1000);
  }

  async #release(): Promise<void> {
    const lastRead = this.#lastRead;
    this.#provedUntilMs = Number.NEGATIVE_INFINITY;
    this.#lastRead = undefined;
    if (!lastRead) return;
    const attempt = this.#attempt(undefined);
    const { signal } = attempt;
    const release = (lease: KubeObject): Promise<KubeObject> =>
      this.#client.replace(leases, releaseLease(this.#lease, lease, this.#clock.now()), { signal });
    try {
      try {
        await release(lastRead);
      } catch (error) {
        if (!isConflict(error)) throw error;
        // A renewal whose answer did not arrive may have changed the Lease.
        const current = await this.#client.get(leases, this.#lease, { signal });
        if (readLease(current).holder === this.#identity) await release(current);
      }
    } catch (error) {
      this.#log.warn('the Lease could not be released; a successor waits until it expires', {
        lease: this.name,
        error: describe(error),
      });
    } finally {
      attempt.release();
    }
  }

  /** In half the renew deadline, so that a second attempt fits. */
  #attempt(signal: AbortSignal | undefined): CallLimit {
    return new CallLimit(this.#clock, signal, this.#deadlineMs / 2);
  }

  #jittered(): number {
    return this.#retryMs * (1 + 0.2 * this.#random());
  }
}

const notLeading = (name: string): CodedError =>
  new CodedError(
    'NotLeading',
    `this process does not hold Lease ${name}; only its holder, the leader, may write; the leader repeats the work`,
  );
