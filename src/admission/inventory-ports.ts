import type { ReconcileRun } from '../api/inventory/reconcile-run.ts';
import type { RegistrationPaths } from '../inventory/policy/registration-rules.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';
import type { ReviewPorts } from './ports.ts';

/** What the webhooks of the inventory need of the world. Rejections refuse the request at hand (fail closed). */
export interface InventoryPorts extends ReviewPorts {
  /** The latest record of a component of an entry, never a cached one; undefined when there is none that can be read. */
  latestRun(
    namespace: string,
    entryUid: string,
    component: string,
    signal: AbortSignal,
  ): Promise<ReconcileRun | undefined>;
  /** What a component owns; undefined when it is not registered. */
  writesOf(component: string, signal: AbortSignal): Promise<readonly JsonPointer[] | undefined>;
  /** All registrations there are. */
  registrations(signal: AbortSignal): Promise<readonly RegistrationPaths[]>;
  /** `namespace/name` of one of the component's records; undefined when it has none. */
  anyRunOf(component: string, signal: AbortSignal): Promise<string | undefined>;
  /** A write of a component was refused; not told of dry runs. */
  fenced(code: string): void;
}
