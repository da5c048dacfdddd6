import type { podCodes, requestCodes } from './access/codes.ts';
import type { policyCodes } from './access/policy-codes.ts';
import type { templateCodes } from './access/template-codes.ts';
import type { voteCodes } from './access/vote-codes.ts';
import type { CodeTable } from './code-table.ts';
import type { inventoryCodes } from './inventory/codes.ts';

/** Denials of any webhook. */
export const serverCodes = {
  InvalidObject: {
    audience: 'anyone',
    meaning: 'The object is malformed or too large, or has an invalid field or name.',
    remedy: 'Correct what the message names.',
  },
  CallerTooLarge: {
    audience: 'operator',
    meaning:
      'The caller has more than 1,000 groups or values of extra, or one of them, the name, or the uid exceeds 1,024 characters.',
    remedy: 'Remove the user from some groups, or let authentication report less.',
  },
  AuditUnavailable: {
    audience: 'operator',
    meaning:
      'The server or the gateway cannot write its audit journal, so no access, session, or recording opens. Open access still ends on time.',
    remedy: 'Free disk space, check the log collector, or restart with another `--audit-log`.',
  },
  DeadlineExceeded: {
    audience: 'operator',
    meaning: 'The webhook did not decide within its timeout.',
    remedy: 'Try again. Check the latency of the API server.',
  },
  InternalError: {
    audience: 'operator',
    meaning: 'The webhook or the gateway failed unexpectedly.',
    remedy: 'The message or the log line `webhook failed to decide` has the cause.',
  },
} as const satisfies CodeTable;

/** Denials by the inventory's webhooks, and Events. */
export type InventoryCode = keyof typeof inventoryCodes;

/** Stable. Messages of denials begin with them, and many are also reasons of conditions. */
export type Code =
  | keyof typeof requestCodes
  | keyof typeof templateCodes
  | keyof typeof voteCodes
  | keyof typeof podCodes
  | keyof typeof policyCodes
  | keyof typeof serverCodes
  | InventoryCode;
