import type { InventoryCode } from '../../api/codes.ts';

export interface Violation {
  readonly code: InventoryCode;
  /** What was found; what is allowed; what to do. */
  readonly message: string;
  /** JSON pointer in an entry, or path with dots in a registration. */
  readonly field?: string;
  readonly status: 403 | 413 | 422;
}

/** A write without a current run. accounts/dry-run-proof.ts expects it. */
export const noSuchRunCode: InventoryCode = 'NoSuchRun';
