import { benchmark } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { approvedRound, loneRound } from './workloads/lone.ts';

/**
 * N requests in sequence, with pods Ready after 200 ms: the time that a user waits, and the calls of the server. APPROVALS=1: in turn with
 * N requests that a second person approves.
 */
await (process.env['APPROVALS']
  ? benchmark('lone-approved', (stage) => approvedRound(stage, numberFrom('N', 100)))
  : benchmark('lone', (stage) => loneRound(stage, numberFrom('N', 50))));
