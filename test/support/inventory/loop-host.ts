import type { StoredRecord } from '../../../src/inventory/core/run-record.ts';
import type { Lane } from '../../../src/inventory/core/triggers.ts';
import type { Limits } from '../../../src/inventory/mothership/limits.ts';
import type { Look } from '../../../src/inventory/mothership/look.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import type { Clock } from '../../../src/kit/clock.ts';
import type { SimEntry } from './simulated-entry.ts';
import type { SimComponent, SimulatedWorld } from './simulated-world.ts';
import type { Timeline } from './timeline.ts';
import type { TurnChecks } from './turn-checks.ts';

/** What a key needs of the process that it lives in. */
export interface LoopHost {
  readonly world: SimulatedWorld;
  readonly time: Timeline;
  readonly clock: Clock;
  readonly look: Look;
  readonly limits: Limits;
  readonly turns: TurnChecks;
  /** Entries, as far as its watch has got. */
  readonly seen: ReadonlyMap<string, SimEntry>;
  /** It knows that it may not lead any more. */
  readonly isGuarded: boolean;
  registration(component: SimComponent): Registration;
  digest(entry: SimEntry, component: SimComponent): string;
  later(delayMs: number, act: () => void): void;
  enqueue(key: string, delayMs: number, lane: Lane, reason: string): void;
  turnOver(key: string): void;
  endpoint(component: string, verdict: 'answered' | 'failed', retryAfterMs: number | undefined): void;
  /** This process has written the record. */
  wrote(key: string, stored: StoredRecord): void;
  finalize(uid: string): void;
}
