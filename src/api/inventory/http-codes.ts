import type { CodeTable } from '../code-table.ts';

/** Answers to the reports of components, at `callback`. */
export const reportCodes = {
  Unauthorized: {
    audience: 'component',
    meaning: 'Status 401. The token is missing, invalid, or expired, or the entry is gone.',
    remedy: 'Send the latest `auth.token` that the call or an answer to a heartbeat contained. If you did, stop.',
  },
  ForeignCredential: {
    audience: 'component',
    meaning:
      'Status 403. The token belongs to another run or was replaced. For a heartbeat also: the entry is being deleted.',
    remedy:
      'Use the latest token of the run. If the message says that the entry is being deleted, stop, and report the outcome.',
  },
  InvalidReport: {
    audience: 'component',
    meaning: 'Status 400. The report violates the [contract](component-answers.md#reports).',
    remedy: 'Correct the field that the message names. The same report is rejected again.',
  },
  TooLarge: {
    audience: 'component',
    meaning: 'Status 413. The report has more than 131,072 bytes.',
    remedy: 'Report less, for example smaller outputs.',
  },
  RunOver: {
    audience: 'component',
    meaning:
      'Status 409. The run has ended, another run has replaced it, or its deadline or `maxRunSeconds` has passed.',
    remedy: 'Stop working on the run. If this happens often, send heartbeats in time, or increase `maxRunSeconds`.',
  },
  OutcomeDiffers: {
    audience: 'component',
    meaning:
      'Status 409. An earlier report ended the run, and this report differs from it. The earlier outcome counts.',
    remedy: 'Report one outcome for each run. You may repeat it unchanged.',
  },
  NotLeading: {
    audience: 'component',
    meaning: 'Status 503. This replica is not the leader; only the leader accepts reports.',
    remedy:
      'Report again after `Retry-After`. If the answer stays the same, ask an operator to check which replica holds the Lease.',
  },
  Busy: {
    audience: 'component',
    meaning: 'Status 503. The server handles 256 reports, or reviews the tokens of 256 reports, which is the limit.',
    remedy: 'Report again after `Retry-After`.',
  },
  Unavailable: {
    audience: 'component',
    meaning: 'Status 503. The server could not review the token or store the report; its log has the cause.',
    remedy: 'Report again after `Retry-After`. The server accepts a repeated outcome once.',
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
