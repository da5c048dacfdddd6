import { type Attack, attackers, attackSections } from './attacks.ts';
import { page, table } from './markdown.ts';

export const attacksPage = (): string =>
  page(
    'Attacks',
    'docs/generate/attacks.ts',
    'The attacks that we know of. [Limits](limits.md) lists what drawbridge cannot stop, [words](words.md) explains the terms, and [SECURITY.md](../../SECURITY.md) has the threat model.',
    'Tests without a prefix run on a real API server, with kwok in place of kubelets; those of `e2e` on a real node. If “What remains” is empty, we know of nothing.',
    '## Attackers',
    'Administrators of the cluster are trusted. A row without an attacker is open to anyone with the permissions that it names, or is an accident.',
    table(
      ['Attacker', 'What the attacker starts with'],
      Object.entries(attackers).map(([name, start]) => [name, start]),
    ),
    ...Object.entries(attackSections).flatMap(([title, { intro, rows }]) => [
      `## ${title}`,
      ...(intro === undefined ? [] : [intro]),
      table(['Attack', 'Stopped by', 'What remains', 'Tests'], rows.map(cellsOf)),
    ]),
  );

const cellsOf = ({ attack, by, stopped, remains = '', tests }: Attack): string[] => [
  [by.join(', '), attack].filter((text) => text !== '').join(': '),
  stopped,
  remains,
  tests.length === 0 ? 'no test' : tests.map(linkOf).join(', '),
];

/** Labels are short: of a unit test only the name. */
function linkOf(test: string): string {
  const folder = /^(unit|fuzz|faults|e2e)\//.test(test) ? 'test' : 'test/integration';
  const label = test.replace(/^unit\/.*\//, 'unit/');
  return `[${label}](../../${folder}/${test}.test.ts)`;
}
