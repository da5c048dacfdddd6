import { flagSections } from '../../src/flag-table.ts';
import { flagRows } from '../../src/flags.ts';
import { code, page, table } from './markdown.ts';

export const flagsPage = (): string =>
  page(
    'Flags of `drawbridge serve` and `drawbridge revoke-all`',
    'src/flag-table.ts',
    'The environment variable in the table also sets the flag. The flag overrides the variable. Defaults are for a process that starts without the chart; the chart sets some flags from [its values](../../charts/drawbridge/README.md).',
    ...Object.entries(flagSections).flatMap(([title, section]) => [
      `## ${title}`,
      table(
        ['Flag', 'Variable', 'Default', 'Meaning'],
        flagRows(section).map(({ name, placeholder, variable = '', byDefault = '', help }) => [
          code(`--${name} ${placeholder}`),
          code(variable),
          byDefault,
          help,
        ]),
      ),
    ]),
  );
