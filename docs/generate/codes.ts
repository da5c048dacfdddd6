import { endingTexts } from '../../src/access/lifecycle/ending.ts';
import { podCodes, requestCodes, templateCodes } from '../../src/api/access/codes.ts';
import { policyCodes } from '../../src/api/access/policy-codes.ts';
import type { CodeTable } from '../../src/api/code-table.ts';
import { serverCodes } from '../../src/api/codes.ts';
import { inventoryCodes } from '../../src/api/inventory/codes.ts';
import { code, codes, page, table } from './markdown.ts';

/** Codes of denials by topic. */
export const codeSections: Readonly<Record<string, CodeTable>> = {
  Requests: requestCodes,
  Templates: templateCodes,
  'Entering pods': podCodes,
  'Objects of grants': policyCodes,
  Inventory: inventoryCodes,
  Server: serverCodes,
};

export const codesPage = (): string =>
  page(
    'Codes',
    'the codes in src/api and src/access',
    'A code starts the message of a denial, and is the `code` of audit lines, the reason of conditions, and the reason of Warning Events. Codes are stable between releases. [Conditions and Events](conditions.md) have a page of their own.',
    ...Object.entries(codeSections).flatMap(([title, section]) => [
      `## ${title}`,
      table(
        ['Code', 'For', 'Meaning', 'What to do'],
        Object.entries(section).map(([name, { audience, meaning, remedy }]) => [code(name), audience, meaning, remedy]),
      ),
    ]),
    '## Ends of grants',
    'The `code` of a revocation in the audit journal, and the label `ending` of metrics. The janitor also records `Orphaned`, once for each object that it deletes.',
    table(
      ['Code', 'Meaning'],
      Object.entries(endingTexts).map(([name, text]) => [code(name), `${text[0]?.toUpperCase()}${text.slice(1)}.`]),
    ),
    '## Calls that are no admission review',
    `The webhook port answers these with a 4xx and a line of text: ${codes(['InvalidReview', 'BodyTooLarge', 'IncompleteBody', 'UnsupportedMediaType', 'UnsupportedEncoding', 'InvalidJson', 'InvalidUtf8', 'NulCharacter', 'LoneSurrogate', 'TooDeep', 'TooManyKeys', 'TooManyValues', 'DuplicateKey', 'ForbiddenKey'])}. They come from a client other than kube-apiserver, or from a webhook configuration with a wrong path. With a 503, \`Overloaded\` says that the port is at its limit.`,
  );
