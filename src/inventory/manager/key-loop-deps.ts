import type { KeyBackoff } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import type { EndpointProblem } from '../core/key-state.ts';
import type { Entry } from '../entry.ts';
import type { ComponentKey } from '../key.ts';
import type { ComponentClient, RunStore, TokenIssuer } from '../ports.ts';
import type { SnapshotReader } from './entry-snapshot.ts';
import type { KeyMemory } from './key-memory.ts';
import type { Limits } from './limits.ts';
import type { OutputWriter } from './output-writer.ts';
import type { RegistrationLister } from './registrations.ts';
import type { RecordWriter } from './retried-writes.ts';
import type { RunReporter } from './run-reporter.ts';

/** Dependencies of a key loop while this replica is the leader. */
export interface KeyLoopDeps {
  /** Aborts when leadership ends. No write starts afterwards. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly registrations: RegistrationLister;
  readonly snapshots: SnapshotReader;
  readonly limits: Limits;
  readonly runs: RunStore;
  readonly recordWriter: RecordWriter;
  readonly tokens: TokenIssuer;
  readonly components: ComponentClient;
  /** Address of the API server for components. `ca`: its CA in PEM; undefined: components use the public CAs. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** URL for reports, without a trailing slash. */
  readonly callbackUrl: string;
  readonly outputWriter: OutputWriter;
  readonly reporter: RunReporter;
  /** Backoff of keys whose start, handling, or removal failed. It delays the enqueues that `step` requests. */
  readonly failures: KeyBackoff<KeyMemory>;
  /** Backoff of keys with a stored start whose component the server could not call. */
  readonly uncalled: KeyBackoff<KeyMemory>;
  /** Backoff of keys whose record the API server rejects. */
  readonly rejections: KeyBackoff<KeyMemory>;
  /** Enqueues a key, in its text form, after `delayMs` monotonic milliseconds. */
  enqueue(keyText: string, reason: string, lane: number, delayMs: number): void;
  /** Records the result of a call in the circuit breaker of the component's endpoint. */
  recordCallResult(
    component: string,
    verdict: 'answered' | 'failed',
    retryAfterMs: number | undefined,
    problem: EndpointProblem | undefined,
  ): void;
  /** Delay until the circuit breaker admits a call after one that fails now, milliseconds; undefined if that call leaves it closed. */
  probeDelayMs(component: string, retryAfterMs: number | undefined): number | undefined;
  /** Called after the outputs and the record of a key were removed. */
  retired(key: ComponentKey, entry: Entry, how: { readonly abandoned: boolean }): void;
}
