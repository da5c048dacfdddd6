import type { InventoryCode } from '../../api/codes.ts';

/** Why a write or a registration is refused, for the person who meets it. */
export interface Violation {
  readonly code: InventoryCode;
  /** What was found, what is allowed, what to do. */
  readonly message: string;
  /** JSON pointer, or JSON path of a registration's field. */
  readonly field?: string;
  /** HTTP status of the refusal. */
  readonly status: 403 | 413 | 422;
}

/** The code that a dry-run write without a run has to be refused with, before anything is dispatched. */
export const noSuchRunCode: InventoryCode = 'NoSuchRun';
