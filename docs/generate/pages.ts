import { alertsPage } from './alerts-page.ts';
import { attacksPage } from './attacks-page.ts';
import { chartPage } from './chart-values.ts';
import { codesPage } from './codes.ts';
import { commandsPage } from './commands.ts';
import { conditionsPage } from './conditions.ts';
import { flagsPage } from './flags.ts';
import { kindPages } from './kinds.ts';
import { metricsPage } from './metrics.ts';
import { runReasonsPage } from './run-reasons.ts';

/** The generated pages, by path below docs/, always the same for the same sources. */
export const generatedPages = (): ReadonlyMap<string, string> =>
  new Map([
    ['reference/flags.md', flagsPage()],
    ['reference/commands.md', commandsPage()],
    ['../charts/drawbridge/README.md', chartPage()],
    ['reference/metrics.md', metricsPage()],
    ['reference/alerts.md', alertsPage()],
    ['reference/codes.md', codesPage()],
    ['reference/conditions.md', conditionsPage()],
    ['inventory/run-reasons.md', runReasonsPage()],
    ...kindPages(),
    ['security/attacks.md', attacksPage()],
  ]);
