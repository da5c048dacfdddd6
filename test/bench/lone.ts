import { benchmark } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { loneRound } from './workloads/lone.ts';

/** N requests in sequence, with pods Ready after 200 ms: the time that a user waits, and the calls of the server. */
await benchmark('lone', (stage) => loneRound(stage, numberFrom('N', 50)));
