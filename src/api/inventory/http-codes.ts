import type { CodeTable } from '../code-table.ts';

/** Answers to the reports of components, at `callback`. */
export const reportCodes = {
  Unauthorized: {
    audience: 'component',
    meaning: 'Status 401. The token is missing, invalid, or expired, or the entry is gone.',
    remedy: 'Send the latest `auth.token` of the call or of an answer to a heartbeat. If you did, stop.',
  },
  ForeignCredential: {
    audience: 'component',
    meaning:
      'Status 403. The token belongs to another run or was replaced. For a heartbeat also: the entry is being deleted.',
    remedy: 'Use the latest token of the run. If the entry is being deleted, stop, and report the outcome.',
  },
  InvalidReport: {
    audience: 'component',
    meaning: 'Status 400. The report violates the [contract](../inventory/component-answers.md#reports).',
    remedy: 'Correct the field that the message names. The same report is rejected again.',
  },
  TooLarge: {
    audience: 'component',
    meaning: 'Status 413. The report exceeds 131,072 bytes.',
    remedy: 'Report smaller outputs.',
  },
  RunOver: {
    audience: 'component',
    meaning: 'Status 409. The run has ended or was replaced, or its deadline or `maxRunSeconds` has passed.',
    remedy: 'Stop the run. If this happens often, send heartbeats in time, or increase `maxRunSeconds`.',
  },
  OutcomeDiffers: {
    audience: 'component',
    meaning: 'Status 409. The report differs from the one that ended the run, which counts.',
    remedy: 'Report one outcome for each run. You may repeat it unchanged.',
  },
  NotLeading: {
    audience: 'component',
    meaning: 'Status 503. This replica is not the leader, which alone accepts reports.',
    remedy: 'Report again after `Retry-After`. If this repeats, ask an operator which replica holds the Lease.',
  },
  Unavailable: {
    audience: 'component',
    meaning:
      'Status 503. drawbridge handles 256 reports or reviews 256 tokens, the limit, or failed to review the token or store the report; its log has the cause.',
    remedy: 'Report again after `Retry-After`. drawbridge accepts a repeated outcome once.',
  },
  NotFound: {
    audience: 'component',
    meaning: 'Status 404. The path is not that of a run.',
    remedy: 'Use `callback` of the call unchanged.',
  },
  MethodNotAllowed: {
    audience: 'component',
    meaning: 'Status 405. The method is not POST.',
    remedy: 'Use POST.',
  },
} as const satisfies CodeTable;

export type ReportCode = keyof typeof reportCodes;
