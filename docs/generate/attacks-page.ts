import { type Attack, attackers, attackSections } from './attacks.ts';
import { page, table } from './markdown.ts';

export const attacksPage = (): string =>
  page(
    'Attacks',
    'docs/generate/attacks.ts',
    'This page lists the attacks that we know of, what stops each, what remains possible, and the tests that show it. [Limits](limits.md) lists what drawbridge cannot stop. [Words](words.md) explains the terms. [SECURITY.md](../../SECURITY.md) has the threat model.',
    'Tests named `unit`, `fuzz`, or `faults` are of that kind, and `e2e` runs on a real node. All others run on a real API server with etcd, and with kwok in place of kubelets. If “What remains” is empty, we know of nothing.',
    '## Attackers',
    'Administrators of the cluster are trusted.',
    table(
      ['Attacker', 'What the attacker starts with'],
      Object.entries(attackers).map(([name, start]) => [name, start]),
    ),
    ...Object.entries(attackSections).flatMap(([title, { intro, rows }]) => [
      `## ${title}`,
      ...(intro === undefined ? [] : [intro]),
      table(['Attack', 'Attacker', 'Stopped by', 'What remains', 'Tests'], rows.map(cellsOf)),
    ]),
  );

const cellsOf = ({ attack, by, stopped, remains = '', tests }: Attack): string[] => [
  attack,
  by.join(', '),
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
