import { benchmark } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { loneRound } from './workloads/lone.ts';

/** N requests in sequence, with pods Ready after 200 ms: the wait of a person, and the calls it costs. */
await benchmark('lone', (stage) => loneRound(stage, numberFrom('N', 50)));
