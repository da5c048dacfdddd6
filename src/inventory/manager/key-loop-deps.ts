import type { KeyBackoff } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Inputs } from '../core/step.ts';
import type { Entry } from '../entry.ts';
import type { ComponentKey } from '../key.ts';
import type { ComponentClient, RunStore, TokenIssuer } from '../ports.ts';
import type { SnapshotReader } from './entry-snapshot.ts';
import type { KeyMemory } from './key-memory.ts';
import type { Limits } from './limits.ts';
import type { Outputs } from './outputs.ts';
import type { Records } from './persist.ts';
import type { Registry } from './registrations.ts';
import type { RunReporter } from './run-reporter.ts';

/** What carries out effects, for as long as this process leads. */
export interface KeyLoopDeps {
  /** Aborts when it does not lead any more: nothing is written from then on. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: () => number;
  readonly registry: Registry;
  readonly snapshots: SnapshotReader;
  readonly limits: Limits;
  readonly runs: RunStore;
  readonly records: Records;
  readonly tokens: TokenIssuer;
  readonly components: ComponentClient;
  /** The API server as components reach it. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a slash at the end. */
  readonly callbackUrl: string;
  readonly outputs: Outputs;
  readonly reporter: RunReporter;
  /** Of keys that could not be started, handled or taken out. */
  readonly failures: KeyBackoff<KeyMemory>;
  /** Of keys that were started, and whose component was not called for a reason of our own. */
  readonly uncalled: KeyBackoff<KeyMemory>;
  /** Of keys whose record is refused. */
  readonly refusals: KeyBackoff<KeyMemory>;
  /** Puts a key into the queue. `delayMs` is monotonic time. */
  enqueue(text: string, reason: string, lane: number, delayMs: number): void;
  /** What the breaker of its endpoint is told. */
  endpoint(component: string, verdict: 'answered' | 'failed', retryAfterMs: number | undefined): void;
  /** A component is done with an entry for good. */
  retired(key: ComponentKey, entry: Entry, mayRun: Inputs['mayRun']): void;
}
