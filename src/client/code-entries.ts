import { posix } from 'node:path';
import { podCodes, requestCodes } from '../api/access/codes.ts';
import { endingTexts } from '../api/access/ending.ts';
import { policyCodes } from '../api/access/policy-codes.ts';
import { templateCodes } from '../api/access/template-codes.ts';
import { voteCodes } from '../api/access/vote-codes.ts';
import { bindingCodes } from '../api/binding/codes.ts';
import type { CodeTable } from '../api/code-table.ts';
import { serverCodes } from '../api/codes.ts';
import { gatewayCodes, sessionEndTexts } from '../api/gateway/codes.ts';
import { inventoryCodes } from '../api/inventory/codes.ts';
import { reportCodes } from '../api/inventory/http-codes.ts';

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

/** One code, as plain text. */
export interface CodeEntry {
  readonly code: string;
  readonly topic: string;
  /** Who can act; empty for the end of a grant or session. */
  readonly audience: string;
  readonly meaning: string;
  /** What to do; empty for the end of a grant or session. */
  readonly remedy: string;
}

/** Without ends, which are no errors. */
export const codeEntries: readonly CodeEntry[] = Object.entries(codeSections).flatMap(([topic, section]) =>
  Object.entries(section).map(([code, { audience, meaning, remedy }]) => ({
    code,
    topic,
    audience,
    meaning: plainText(meaning),
    remedy: plainText(remedy),
  })),
);

export const endEntries: readonly CodeEntry[] = [
  ...endsOf('Ends of grants', endingTexts),
  ...endsOf('Ends of sessions', sessionEndTexts),
];

function endsOf(topic: string, clauses: Readonly<Record<string, string>>): CodeEntry[] {
  return Object.entries(clauses).map(([code, text]) => {
    const meaning = plainText(`${text[0]?.toUpperCase()}${text.slice(1)}.`);
    return { code, topic, audience: '', meaning, remedy: '' };
  });
}

/** Without the Markdown of the reference; a link becomes its text and the path of its page. */
function plainText(markdown: string): string {
  const withoutLinks = markdown.replaceAll(/\[([^\]]+)\]\(([^)]*)\)/g, (_, text: string, target: string) =>
    target.startsWith('#') ? text : `${text} (${posix.join('docs/reference', target)})`,
  );
  return withoutLinks.replaceAll('`', '');
}
