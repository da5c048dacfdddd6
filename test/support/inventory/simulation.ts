import type { Entry } from '../../../src/inventory/entry.ts';
import type { ComponentKey } from '../../../src/inventory/key.ts';
import type { ReportAnswer } from '../../../src/inventory/ports.ts';
import type { Registration } from '../../../src/inventory/registration.ts';
import type { RegistrationSeed } from './memory-registrations.ts';
import type { MemoryInventory } from './memory-stores.ts';
import type { Timeline } from './timeline.ts';

/** A component: what it reads, and what it makes of it. */
export interface SimComponent {
  readonly name: string;
  /** As it is registered in the beginning. */
  readonly registration: SimRegistration;
  /** Outputs of others without which it is not ready. */
  readonly needs: readonly string[];
  /** Outputs of others that it uses where they are. */
  readonly likes: readonly string[];
  readonly specFields: readonly string[];
  readonly value: (inputs: readonly number[]) => number;
  /** It patches the entry itself, or returns outputs. */
  readonly patches: boolean;
  readonly durationMs: number;
  /** It is deleted when nobody reads its output any more, and does not say who does. */
  readonly waitsForReaders?: boolean;
  /** It never answers 202. */
  readonly isSynchronous?: boolean;
  /** What it publishes is the version of the kubeconfig. */
  readonly makesKubeconfig?: boolean;
  /** The component whose kubeconfig it uses. */
  readonly usesKubeconfigOf?: string | undefined;
  /** It answers 503. */
  isDown?: boolean;
}

/** The spec of its registration, as far as a schedule is about it. */
export interface SimRegistration extends RegistrationSeed {
  readonly reads: readonly string[];
  readonly intervalSeconds: number;
  readonly timeoutSeconds: number;
  readonly leaseSeconds: number;
  readonly maxRunSeconds: number;
  readonly maxConcurrent: number;
  readonly retry: { readonly baseSeconds: number; readonly capSeconds: number };
}

/** A manager, as it is looked at from outside. */
export interface SimManager {
  readonly paused: boolean;
  /** It does not hold the lease any more, and looks at that before it writes what no compare-and-swap guards. */
  readonly isGuarded: boolean;
  readonly leadsSince: number;
  /** By key: what the run was decided on that a token was last issued for. */
  readonly starting: ReadonlyMap<string, { readonly entry: Entry; readonly registration: Registration }>;
  /** An entry as its watch has it. */
  seen(uid: string): Entry | undefined;
  registrationChanged(name: string): void;
  report(run: ComponentKey & { readonly seq: number }, credential: string, body: unknown): Promise<ReportAnswer>;
  stop(): void;
}

/** The world, as those look at it who check what happens in it. */
export interface CheckedWorld {
  readonly time: Timeline;
  readonly inventory: MemoryInventory;
  readonly components: ReadonlyMap<string, SimComponent>;
  readonly faulty: boolean;
  /** The manager whose request the API server carries out. */
  readonly writer: SimManager | undefined;
  entry(uid: string): Entry | undefined;
  /** A number that grows with everything that is asked for one. */
  next(): number;
}
