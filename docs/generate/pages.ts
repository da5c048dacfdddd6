import { chartValuesPage } from './chart-values.ts';
import { codesPage } from './codes.ts';
import { commandsPage } from './commands.ts';
import { conditionsPage } from './conditions.ts';
import { flagsPage } from './flags.ts';
import { kindPages } from './kinds.ts';
import { metricsPage } from './metrics.ts';
import { runReasonsPage } from './run-reasons.ts';

/** The generated pages of docs/reference/ by file name, always the same for the same sources. */
export const referencePages = (): ReadonlyMap<string, string> =>
  new Map([
    ['flags.md', flagsPage()],
    ['commands.md', commandsPage()],
    ['chart-values.md', chartValuesPage()],
    ['metrics.md', metricsPage()],
    ['codes.md', codesPage()],
    ['conditions.md', conditionsPage()],
    ['run-reasons.md', runReasonsPage()],
    ...kindPages(),
  ]);
