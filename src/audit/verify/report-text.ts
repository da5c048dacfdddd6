import { printable } from '../../kit/printable.ts';
import { type ChainReport, type Finding, place, type RecordingsReport, type VerifyReport } from './report.ts';

/** The last line is the verdict. */
export function reportText(report: VerifyReport): string {
  const { findings, more, chains, stumps, keys, recordings, verdict } = report;
  return [
    ...findings.map(findingText),
    ...(more > 0 ? [`and ${more} more findings`] : []),
    ...chains.map(chainText),
    ...stumps.map((stump) => `${place(stump)}: the line is incomplete and contains no record`),
    ...keys.map((key) => `heads are signed by key ${key}`),
    ...(recordings ? [recordingsText(recordings)] : []),
    verdicts[verdict],
    '',
  ]
    .map(printable)
    .join('\n');
}

const verdicts: Record<VerifyReport['verdict'], string> = {
  intact: 'INTACT: the journal is unchanged up to the last signed head of each chain',
  unsigned:
    'UNSIGNED: no contradiction found, but some chains have only lines that no signed head covers, or some recordings have no line',
  changed: 'CHANGED: the journal, a head, or a recording is not as the server wrote it, or a part is missing',
};

function recordingsText({ complete, incomplete, deleted, unchecked, unprovenBytes }: RecordingsReport): string {
  const unproven = unprovenBytes > 0 ? ` with ${unprovenBytes} unproven bytes` : '';
  const notChecked = unchecked > 0 ? `, ${unchecked} not checked: the given files lack their lines` : '';
  return `recordings: ${complete} complete, ${incomplete} incomplete${unproven}, ${deleted} deleted by retention${notChecked}`;
}

function findingText({ code, message, chain, at }: Finding): string {
  return `${at ? `${place(at)}: ` : ''}${code}: ${message}${chain ? ` (chain ${chain})` : ''}`;
}

function chainText({ chain, replica, first, last, signedTo, unproven, lost }: ChainReport): string {
  const name = `chain ${chain}${replica === undefined ? '' : ` of ${replica}`}`;
  if (last === 0) return `${name}: the given files contain no line of it`;
  const parts = [
    `lines ${first} to ${last}`,
    signedTo > 0 ? `signed to ${signedTo}` : 'not signed',
    ...(unproven > 0 ? [`${unproven} unproven`] : []),
    ...(lost > 0 ? [`${lost} could not be written`] : []),
  ];
  return `${name}: ${parts.join(', ')}`;
}
