import type { podCodes, requestCodes } from './access/codes.ts';
import type { policyCodes } from './access/policy-codes.ts';
import type { templateCodes } from './access/template-codes.ts';
import type { voteCodes } from './access/vote-codes.ts';
import type { CodeTable } from './code-table.ts';
import type { inventoryCodes } from './inventory/codes.ts';

/** Denials of any webhook. */
export const serverCodes = {
  InvalidSpec: {
    audience: 'anyone',
    meaning: 'Fields of the spec are invalid.',
    remedy: 'Correct every field that the message lists.',
  },
  InvalidObject: {
    audience: 'anyone',
    meaning: 'The object is malformed, or its spec is too large.',
    remedy: 'Correct what the message names.',
  },
  InvalidName: {
    audience: 'anyone',
    meaning: 'No object can have this name or namespace.',
    remedy: 'Correct the name.',
  },
  CallerTooLarge: {
    audience: 'operator',
    meaning:
      'The caller has more than 1,000 groups, or more than 1,000 keys and values in extra, or its name, uid, a group, or a text in extra exceeds 1,024 characters.',
    remedy:
      'Remove the user from some groups, or configure the authentication of the cluster to report fewer groups and less extra.',
  },
  SigningKeyUnavailable: {
    audience: 'operator',
    meaning: 'The server has not read its signing keys yet.',
    remedy: 'Try again. `/readyz` names the cause.',
  },
  AuditUnavailable: {
    audience: 'operator',
    meaning:
      'The server or the gateway cannot write its audit journal, so it opens no access and no session, and shows no session or recording. Open access still ends on time.',
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
    remedy:
      'If a webhook failed, the line `webhook failed to decide` in the log of the server has the cause. If the gateway failed, the message has it.',
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
