import { benchmark } from './support/command.ts';
import { numberFrom } from './support/figures.ts';
import { loneRound } from './workloads/lone.ts';

/** N requests one after another, pods Ready after 200 ms: how long a person waits, and what it costs. */
await benchmark('lone', (stage) => loneRound(stage, numberFrom('N', 50)));
