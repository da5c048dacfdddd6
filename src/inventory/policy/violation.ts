import type { InventoryCode } from '../../api/codes.ts';

/** A broken rule: why a write or a registration is rejected. */
export interface Violation {
  readonly code: InventoryCode;
  /** What was found; what is allowed; what to do. */
  readonly message: string;
  /** JSON pointer in an entry, or JSON path in a registration. */
  readonly field?: string;
  /** HTTP status of the rejection. */
  readonly status: 403 | 413 | 422;
}

/** The webhook must reject the dry-run write of the proof with this code before any run is dispatched. */
export const noSuchRunCode: InventoryCode = 'NoSuchRun';
