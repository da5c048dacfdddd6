import type { KubeObject, ObjectName } from '../api/object.ts';
import { leases } from '../api/resources.ts';
import type { LeaderGate } from '../engine/leader-gate.ts';
import { type Cancel, type Clock, sleep } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import type { Client } from './client.ts';
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import { claimLease, readLease, releaseLease, sameVersion } from './lease-record.ts';
import { type KubeLog, silentLog } from './log.ts';

export interface LeaseGateOptions {
  readonly client: Client;
  readonly name: string;
  readonly namespace: string;
  /** Unique identity of this process: its Pod name and a random part. */
  readonly identity: string;
  readonly clock: Clock;
  /** Milliseconds without renewal after which another process may take over. Default 15 000. */
  readonly leaseDurationMs?: number;
  /** Milliseconds without proof of renewal after which this process stops leading. Default 10 000. */
  readonly renewDeadlineMs?: number;
  /** Milliseconds between two attempts. Default 2 000. */
  readonly retryPeriodMs?: number;
  readonly log?: KubeLog;
  readonly random?: () => number;
}

export interface LeaseGate extends LeaderGate {
  /** Whether leadership is proved now, by the monotonic clock. */
  readonly leading: boolean;
  /**
   * `client`, whose writes reject with CodedError `NotLeading` while `leading` is false. A process that was frozen may run other
   * callbacks before the timer that aborts its lead, so this check uses no timer and runs before every attempt. It cannot stop a
   * request that was passed to a connection before the freeze; resource versions and uids in the request protect against that one.
   */
  requireLeader(client: Client): Client;
}

/** A gate behind a coordination.k8s.io/v1 Lease, compatible with the leader election of client-go. */
export function leaseGate(options: LeaseGateOptions): LeaseGate {
  return new LeaseCampaign(options);
}

/** How often a standby reads the Lease while a leader renews once. */
const LOOKS_A_TRY = 5;

class LeaseCampaign implements LeaseGate {
  readonly name: string;
  readonly #client: Client;
  readonly #lease: ObjectName;
  readonly #identity: string;
  readonly #clock: Clock;
  readonly #durationMs: number;
  readonly #deadlineMs: number;
  readonly #retryMs: number;
  readonly #log: KubeLog;
  readonly #random: () => number;
  /** The Lease as last read, and when by the clock of this process, which is never compared with the clock of another process. */
  #seen: KubeObject | undefined;
  #seenAtMs = 0;
  #provedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: LeaseGateOptions) {
    this.name = options.name;
    this.#client = options.client.urgent();
    this.#lease = { namespace: options.namespace, name: options.name };
    this.#identity = options.identity;
    this.#clock = options.clock;
    this.#durationMs = options.leaseDurationMs ?? 15_000;
    this.#deadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    this.#log = options.log ?? silentLog;
    this.#random = options.random ?? Math.random;
    if (!(this.#retryMs * 1.2 < this.#deadlineMs && this.#deadlineMs < this.#durationMs)) {
      throw new CodedError(
        'InvalidLeaseTimes',
        `lease ${this.name}: needs 1.2 × retry period < renew deadline < lease duration, ` +
          `got ${this.#retryMs}, ${this.#deadlineMs} and ${this.#durationMs} ms`,
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
      this.#log.info('leading', { lease: this.name, identity: this.#identity });
      if ((await this.#reign(lead, signal)) === 'done') return;
      this.#log.warn('no longer leading', { lease: this.name, identity: this.#identity });
    }
  }

  /** Resolves to true once this process holds the Lease, and to false when `signal` aborts. */
  async #acquire(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if (await this.#try(signal)) return true;
      await sleep(this.#clock, this.#nextTryMs(), signal).catch(() => undefined);
    }
    return false;
  }

  /** Runs `lead` and renews the Lease until it has settled; `lost` if the Lease was lost before that. */
  async #reign(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<'done' | 'lost'> {
    const reign = new AbortController();
    const settled = new AbortController();
    const onStop = (): void => reign.abort(signal.reason);
    signal.addEventListener('abort', onStop, { once: true });
    if (signal.aborted) onStop();
    const renewing = this.#renew(settled.signal, () => reign.abort(notLeading(this.name)));
    try {
      // Also catches an error before its first await.
      await (async () => lead(reign.signal))();
    } catch (error) {
      if (!reign.signal.aborted) throw error;
      this.#log.debug('the work of the leader ended with its abort', { lease: this.name, error: describe(error) });
    } finally {
      settled.abort();
      signal.removeEventListener('abort', onStop);
      if ((await renewing) === 'held') await this.#release();
    }
    return (await renewing) === 'held' ? 'done' : 'lost';
  }

  /** Renews until `settled` aborts (`held`) or the proof has expired (`lost`; calls `onLost` at that moment). */
  async #renew(settled: AbortSignal, onLost: () => void): Promise<'held' | 'lost'> {
    const over = new AbortController();
    let outcome: 'held' | 'lost' = 'held';
    let cancelExpiry: Cancel = () => {};
    const lose = (): void => {
      if (over.signal.aborted) return;
      outcome = 'lost';
      onLost();
      over.abort();
    };
    const watchExpiry = (): void => {
      cancelExpiry();
      cancelExpiry = this.#clock.schedule(this.#provedUntilMs - this.#clock.monotonic(), lose);
    };
    const onSettled = (): void => over.abort();
    settled.addEventListener('abort', onSettled, { once: true });
    if (settled.aborted) onSettled();
    watchExpiry();
    while (!over.signal.aborted) {
      await sleep(this.#clock, this.#jittered(), over.signal).catch(() => undefined);
      if (over.signal.aborted) break;
      if (!this.leading) lose();
      else if (await this.#try(over.signal)) watchExpiry();
      else if (this.#heldByOther()) lose();
    }
    cancelExpiry();
    settled.removeEventListener('abort', onSettled);
    if (!this.leading) outcome = 'lost';
    if (outcome === 'lost') this.#provedUntilMs = Number.NEGATIVE_INFINITY;
    return outcome;
  }

  /** Tries once to acquire or renew the Lease. The proof counts from before the request, so it expires before another process may lead. */
  async #try(signal: AbortSignal): Promise<boolean> {
    const attempt = this.#attempt(signal);
    try {
      return await this.#claim(attempt.signal);
    } catch (error) {
      if (!signal.aborted) {
        // Another process wrote in between; the next attempt reads the Lease first.
        if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) this.#seen = undefined;
        else this.#log.warn('lease request failed', { lease: this.name, error: describe(error) });
      }
      return false;
    } finally {
      attempt.end();
    }
  }

  async #claim(signal: AbortSignal): Promise<boolean> {
    // A leader writes over its last write; a standby reads the Lease first.
    if (!this.leading || !this.#seen) await this.#look(signal);
    if (this.#heldByOther()) return false;
    const sentAtMs = this.#clock.monotonic();
    const before = this.#seen;
    const claim = claimLease({
      name: this.#lease,
      holder: this.#identity,
      durationMs: this.#durationMs,
      nowMs: this.#clock.now(),
      before,
    });
    const written = await (before
      ? this.#client.replace(leases, claim, { signal })
      : this.#client.create(leases, claim, { signal }));
    this.#seen = written;
    this.#seenAtMs = sentAtMs;
    this.#provedUntilMs = sentAtMs + this.#deadlineMs;
    return true;
  }

  async #look(signal: AbortSignal): Promise<void> {
    try {
      const lease = await this.#client.get(leases, this.#lease, { signal });
      if (!sameVersion(this.#seen, lease)) this.#seenAtMs = this.#clock.monotonic();
      this.#seen = lease;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#seen = undefined;
    }
  }

  #heldByOther(): boolean {
    if (!this.#seen) return false;
    const { holder } = readLease(this.#seen);
    return holder !== '' && holder !== this.#identity && this.#clock.monotonic() < this.#freeAtMs();
  }

  #freeAtMs(): number {
    const seconds = this.#seen && readLease(this.#seen).durationSeconds;
    return this.#seenAtMs + (seconds === undefined ? this.#durationMs : seconds * 1000);
  }

  async #release(): Promise<void> {
    const seen = this.#seen;
    this.#provedUntilMs = Number.NEGATIVE_INFINITY;
    this.#seen = undefined;
    if (!seen) return;
    const attempt = this.#attempt(undefined);
    const { signal } = attempt;
    const release = (lease: KubeObject): Promise<KubeObject> =>
      this.#client.replace(leases, releaseLease(this.#lease, lease, this.#clock.now()), { signal });
    try {
      try {
        await release(seen);
      } catch (error) {
        if (!isConflict(error)) throw error;
        // A renewal whose answer was abandoned may have succeeded.
        const now = await this.#client.get(leases, this.#lease, { signal });
        if (readLease(now).holder === this.#identity) await release(now);
      }
    } catch (error) {
      this.#log.warn('the Lease could not be released; a successor waits until it expires', {
        lease: this.name,
        error: describe(error),
      });
    } finally {
      attempt.end();
    }
  }

  /** A signal for one request: at most half the renew deadline, so that a second attempt fits. */
  #attempt(signal: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
    const abort = new AbortController();
    const onAbort = (): void => abort.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    const cancel = this.#clock.schedule(this.#deadlineMs / 2, () =>
      abort.abort(new CodedError('LeaseTimeout', `no answer within ${this.#deadlineMs / 2} ms`)),
    );
    return {
      signal: abort.signal,
      end: () => {
        cancel();
        signal?.removeEventListener('abort', onAbort);
      },
    };
  }

  /** A standby reads often, so that it acquires a released Lease at once, and again when the Lease that it read expires. */
  #nextTryMs(): number {
    if (!this.#heldByOther()) return this.#jittered();
    return Math.min(this.#jittered() / LOOKS_A_TRY, Math.max(50, this.#freeAtMs() - this.#clock.monotonic()));
  }

  #jittered(): number {
    return this.#retryMs * (1 + 0.2 * this.#random());
  }
}

const notLeading = (name: string): CodedError =>
  new CodedError('NotLeading', `this process does not hold the Lease ${name}; another process may`);
