import { endingTexts } from '../../src/api/access/ending.ts';
import type { CodeTable } from '../../src/api/code-table.ts';
import { sessionEndTexts } from '../../src/api/gateway/codes.ts';
import { codeSections } from '../../src/client/code-entries.ts';
import { code, codes, page, table } from './markdown.ts';

export const codesPage = (): string =>
  page(
    'Codes',
    'the codes in src/api and src/access',
    'The message of a denial begins with a code. Programs find it in `status.details.causes` of the answer, as `reason`, with the field. Audit lines have it as `code`, conditions and Warning Events as reason. Codes are stable between releases. See also [conditions and Events](conditions.md) and [run reasons](../inventory/run-reasons.md). `drawbridge explain-code CODE` prints one, `drawbridge help codes` the list.',
    ...Object.entries(codeSections).flatMap(([title, section]) => [`## ${title}`, sectionTable(section)]),
    '## Ends of grants',
    'The audit journal has these as `code` of a revocation, and metrics as label `ending`. The janitor also records `Orphaned` for each object that it deletes.',
    endTable(endingTexts),
    '## Ends of sessions',
    'The audit journal has these as `code` of the line `ended`. Without a code, the client or its command ended the session.',
    endTable(sessionEndTexts),
    '## Calls that are not admission reviews',
    `The webhook port answers them with a 4xx status and a line of text: ${codes(['InvalidReview', 'BodyTooLarge', 'IncompleteBody', 'UnsupportedMediaType', 'UnsupportedEncoding', 'InvalidJson', 'InvalidUtf8', 'NulCharacter', 'LoneSurrogate', 'TooDeep', 'TooManyKeys', 'TooManyValues', 'DuplicateKey', 'ForbiddenKey'])}. The client is not kube-apiserver, or a webhook configuration has a wrong path. With status 503 and \`Overloaded\`, the port is at its limit.`,
  );

/** The header names the usual reader; the remedy of another one begins with it. */
function sectionTable(section: CodeTable): string {
  const texts = Object.entries(section);
  const usual = mostFrequent(texts.map(([, { audience }]) => audience));
  return table(
    ['Code', 'Meaning', usual === 'anyone' ? 'What to do' : `What the ${usual} does`],
    texts.map(([name, { audience, meaning, remedy }]) => [
      code(name),
      meaning,
      audience === usual ? remedy : `(${audience}) ${remedy}`,
    ]),
  );
}

function mostFrequent<Item>(items: readonly Item[]): Item | undefined {
  const count = (item: Item): number => items.filter((other) => other === item).length;
  return [...items].sort((a, b) => count(b) - count(a))[0];
}

const endTable = (texts: Readonly<Record<string, string>>): string =>
  table(
    ['Code', 'Meaning'],
    Object.entries(texts).map(([name, text]) => [code(name), `${text[0]?.toUpperCase()}${text.slice(1)}.`]),
  );
