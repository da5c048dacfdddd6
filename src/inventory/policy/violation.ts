import type { InventoryCode } from '../../api/codes.ts';

/** A broken rule. The server rejects the write or the registration. */
export interface Violation {
  readonly code: InventoryCode;
  /** What was found; what is allowed; what to do. */
  readonly message: string;
  /** JSON pointer in an entry, or path with dots in a registration; undefined if the rule concerns no single field. */
  readonly field?: string;
  /** HTTP status of the rejection. */
  readonly status: 403 | 413 | 422;
}

/** Code for a write by a token without a current run. accounts/dry-run-proof.ts sends such a write as a dry run, and expects this code. */
export const noSuchRunCode: InventoryCode = 'NoSuchRun';
