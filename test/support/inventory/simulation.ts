import type { Entry } from '../../../src/inventory/entry.ts';
import type { ComponentKey } from '../../../src/inventory/key.ts';
import type { ReportAnswer } from '../../../src/inventory/ports.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import type { RegistrationSeed } from './memory-registrations.ts';
import type { MemoryInventory } from './memory-stores.ts';
import type { Timeline } from './timeline.ts';

/** A simulated component. */
export interface SimComponent {
  readonly name: string;
  /** Initial registration. */
  readonly registration: SimRegistration;
  /** Required outputs of other components. */
  readonly needs: readonly string[];
  /** Optional outputs of other components. */
  readonly likes: readonly string[];
  readonly specFields: readonly string[];
  readonly value: (inputs: readonly number[]) => number;
  /** Whether it patches the entry itself or returns outputs. */
  readonly patches: boolean;
  readonly durationMs: number;
  /** Its teardown waits for noReaders instead of named readers. */
  readonly waitsForReaders?: boolean;
  /** Whether it never answers 202. */
  readonly isSynchronous?: boolean;
  /** Whether it publishes the version of the kubeconfig. */
  readonly makesKubeconfig?: boolean;
  /** Name of the component whose kubeconfig it uses. */
  readonly usesKubeconfigOf?: string | undefined;
  /** Whether it answers 503. */
  isDown?: boolean;
}

/** The registration fields that a schedule changes. */
export interface SimRegistration extends RegistrationSeed {
  readonly reads: readonly string[];
  readonly intervalSeconds: number;
  readonly timeoutSeconds: number;
  readonly leaseSeconds: number;
  readonly maxRunSeconds: number;
  readonly maxConcurrent: number;
  readonly retry: { readonly baseSeconds: number; readonly capSeconds: number };
}

/** A manager as seen by the checks. */
export interface SimManager {
  readonly paused: boolean;
  /** Whether the manager lost the Lease. It checks this before writes without a compare-and-swap. */
  readonly isGuarded: boolean;
  readonly leadsSince: number;
  /** By key: the entry version of the run for which a token was last issued. */
  readonly starting: ReadonlyMap<string, { readonly entry: Entry; readonly registration: Registration }>;
  /** An entry as the manager's watch has it. */
  seen(uid: string): Entry | undefined;
  registrationChanged(name: string): void;
  report(run: ComponentKey & { readonly seq: number }, credential: string, body: unknown): Promise<ReportAnswer>;
  stop(): void;
}

/** The world as seen by the checks. */
export interface CheckedWorld {
  readonly time: Timeline;
  readonly inventory: MemoryInventory;
  readonly components: ReadonlyMap<string, SimComponent>;
  readonly faulty: boolean;
  /** The manager whose request the API server executes. */
  readonly writer: SimManager | undefined;
  entry(uid: string): Entry | undefined;
  /** Returns increasing numbers, to order events. */
  next(): number;
}
