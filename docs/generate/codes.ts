import { endingTexts } from '../../src/access/lifecycle/ending.ts';
import { podCodes, requestCodes } from '../../src/api/access/codes.ts';
import { policyCodes } from '../../src/api/access/policy-codes.ts';
import { templateCodes } from '../../src/api/access/template-codes.ts';
import { voteCodes } from '../../src/api/access/vote-codes.ts';
import { bindingCodes } from '../../src/api/binding/codes.ts';
import type { CodeTable } from '../../src/api/code-table.ts';
import { serverCodes } from '../../src/api/codes.ts';
import { gatewayCodes, sessionEndTexts } from '../../src/api/gateway/codes.ts';
import { inventoryCodes } from '../../src/api/inventory/codes.ts';
import { reportCodes } from '../../src/api/inventory/http-codes.ts';
import { code, codes, page, table } from './markdown.ts';

/** Codes by topic. */
export const codeSections: Readonly<Record<string, CodeTable>> = {
  Requests: requestCodes,
  Votes: voteCodes,
  Templates: templateCodes,
  'Entering Pods': podCodes,
  'Objects of grants': policyCodes,
  'Sessions through the gateway': gatewayCodes,
  Binding: bindingCodes,
  Inventory: inventoryCodes,
  'Reports of components': reportCodes,
  Server: serverCodes,
};

export const codesPage = (): string =>
  page(
    'Codes',
    'the codes in src/api and src/access',
    'The message of a denial begins with a code. For programs, `status.details.causes` of the answer has the code as `reason`, and the field. The code is also the `code` of audit lines, and the reason of conditions and Warning Events. Codes are stable between releases. See also [conditions and Events](conditions.md), and [run reasons](run-reasons.md) for the codes of runs.',
    ...Object.entries(codeSections).flatMap(([title, section]) => [
      `## ${title}`,
      table(
        ['Code', 'For', 'Meaning', 'What to do'],
        Object.entries(section).map(([name, { audience, meaning, remedy }]) => [code(name), audience, meaning, remedy]),
      ),
    ]),
    '## Ends of grants',
    'These are the values of `code` of a revocation in the audit journal, and of the label `ending` of metrics. The janitor also records `Orphaned`, once for each object that it deletes.',
    table(
      ['Code', 'Meaning'],
      Object.entries(endingTexts).map(([name, text]) => [code(name), `${text[0]?.toUpperCase()}${text.slice(1)}.`]),
    ),
    '## Ends of sessions',
    'These are the values of `code` of the line with the verdict `ended` of a session through the gateway. Without a code, the client or its command ended the session.',
    table(
      ['Code', 'Meaning'],
      Object.entries(sessionEndTexts).map(([name, text]) => [code(name), `${text[0]?.toUpperCase()}${text.slice(1)}.`]),
    ),
    '## Calls that are not admission reviews',
    `The webhook port answers such a call with a 4xx status and a line of text: ${codes(['InvalidReview', 'BodyTooLarge', 'IncompleteBody', 'UnsupportedMediaType', 'UnsupportedEncoding', 'InvalidJson', 'InvalidUtf8', 'NulCharacter', 'LoneSurrogate', 'TooDeep', 'TooManyKeys', 'TooManyValues', 'DuplicateKey', 'ForbiddenKey'])}. Such a call comes from a client other than kube-apiserver, or a webhook configuration has a wrong path. The status 503 with \`Overloaded\` means that the port is at its limit.`,
  );
