import type { KeyBackoff } from '../../kit/backoff.ts';
import type { EndpointProblem } from '../core/key-state.ts';
import type { Entry } from '../entry.ts';
import type { ComponentKey } from '../key.ts';
import type { ComponentClient, RunStore, TokenIssuer } from '../ports.ts';
import type { SnapshotReader } from './entry-snapshot.ts';
import type { KeyMemory } from './key-memory.ts';
import type { Limits } from './limits.ts';
import type { OutputWriter } from './output-writer.ts';
import type { RegistrationLister } from './registrations.ts';
import type { RetryDeps } from './retried-writes.ts';
import type { RunReporter } from './run-reporter.ts';

export interface KeyLoopDeps extends RetryDeps {
  /** Aborts when leadership ends. No write starts afterwards. */
  readonly signal: AbortSignal;
  readonly registrations: RegistrationLister;
  readonly snapshots: SnapshotReader;
  readonly limits: Limits;
  readonly runs: RunStore;
  readonly tokens: TokenIssuer;
  readonly components: ComponentClient;
  /** For components. `ca` in PEM; without it, they use the public CAs. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a trailing slash. */
  readonly callbackUrl: string;
  readonly outputWriter: OutputWriter;
  readonly reporter: RunReporter;
  /** Of keys whose start, handling, or removal failed. It delays their enqueues. */
  readonly failures: KeyBackoff<KeyMemory>;
  /** Of keys with a stored start whose component the server could not call. */
  readonly uncalled: KeyBackoff<KeyMemory>;
  /** Of keys whose record the API server rejects. */
  readonly rejections: KeyBackoff<KeyMemory>;
  /** `delayMs` is monotonic. */
  enqueue(keyText: string, reason: string, lane: number, delayMs: number): void;
  /** In the circuit breaker of the component's endpoint. */
  recordCallResult(
    component: string,
    verdict: 'answered' | 'failed',
    retryAfterMs: number | undefined,
    problem: EndpointProblem | undefined,
  ): void;
  /** Until the circuit breaker admits a call after a failure now; undefined if it stays closed. */
  probeDelayMs(component: string, retryAfterMs: number | undefined): number | undefined;
  /** After the outputs and the record of a key were removed. */
  retired(key: ComponentKey, entry: Entry, how: { readonly abandoned: boolean }): void;
}
