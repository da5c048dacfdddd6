import type { ChainReport, Finding, VerifyReport } from '../audit/verify/report.ts';
import { place } from '../audit/verify/segment.ts';

/** The report for a person: findings first, then what is known of each chain, then the verdict. */
export function reportText(report: VerifyReport): string {
  const { findings, more, chains, stumps, keys, verdict } = report;
  return [
    ...findings.map(findingText),
    ...(more > 0 ? [`and ${more} more findings`] : []),
    ...chains.map(chainText),
    ...stumps.map((stump) => `${place(stump)}: broke off when it was written and holds no record`),
    ...keys.map((key) => `heads are signed by key ${key}`),
    verdicts[verdict],
    '',
  ]
    .map(printable)
    .join('\n');
}

const verdicts: Record<VerifyReport['verdict'], string> = {
  intact: 'INTACT: as written, up to the last signed head of each chain',
  unsigned: 'UNSIGNED: nothing contradicts, but no signed head vouches for some of the chains',
  changed: 'CHANGED: this is not what was written',
};

function findingText({ code, message, chain, at }: Finding): string {
  return `${at ? `${place(at)}: ` : ''}${code}: ${message}${chain ? ` (chain ${chain})` : ''}`;
}

function chainText({ chain, replica, first, last, signedTo, unproven, lost }: ChainReport): string {
  const name = `chain ${chain}${replica === undefined ? '' : ` of ${replica}`}`;
  if (last === 0) return `${name}: no line is here`;
  const parts = [
    `lines ${first} to ${last}`,
    signedTo > 0 ? `signed to ${signedTo}` : 'not signed',
    ...(unproven > 0 ? [`${unproven} unproven`] : []),
    ...(lost > 0 ? [`${lost} lost when they were written`] : []),
  ];
  return `${name}: ${parts.join(', ')}`;
}

/** Names of files and replicas come from outside; a terminal must not obey them. */
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
