import { isDeepStrictEqual } from 'node:util';
import type { OutcomeName } from '../../../src/api/inventory/reconcile-run.ts';
import type { RunRecord } from '../../../src/inventory/core/run-record.ts';
import { hold } from './violation.ts';

/** What is known of the run that a record is about, from those who took part. */
export interface KnownOfRun {
  /** What the component said. */
  readonly said: readonly OutcomeName[];
  /** Why the component was refused what it needed; the invariant that says what may come of it. */
  readonly refused: string | undefined;
}

/** Each write of a record, as the API server takes it. */
export function checkRecord(
  key: string,
  next: RunRecord,
  before: RunRecord | undefined,
  knownOf: (run: string) => KnownOfRun,
): void {
  const about = aboutOf(key, next, before);
  const hasCredential = next.credentialId !== undefined || next.previousCredential !== undefined;
  hold(!hasCredential || next.phase === 'Running', 'I1: a credential dies with its run', about);
  hold(next.seq >= (before?.seq ?? 0), 'I5: seq cannot go back', about);
  if (!before || next.seq > before.seq) checkStart(next, before, about);
  const { lastOutcome: last } = next;
  const old = before?.lastOutcome;
  if (!last || last === old) return;
  if (last.seq === old?.seq) {
    hold(isDeepStrictEqual(last, old), 'I4, I6: a final outcome never changes', about);
    return;
  }
  hold(last.seq === next.seq, 'I3: an outcome is of the current run', about);
  hold(next.phase === 'Idle' && !hasCredential, 'I1: a credential dies with its run', about);
  const { said, refused } = knownOf(`${key}#${last.seq}`);
  const isRetry = last.outcome === 'Retry';
  hold(isRetry || refused === undefined, refused ?? '', about);
  hold(isRetry || said.includes(last.outcome), 'I3: nothing but Retry comes of what nobody said', about);
  const attempt = before?.attempt ?? 0;
  const attempts = last.outcome === 'Done' ? 0 : attempt + (isRetry ? 1 : 0);
  hold(next.attempt === attempts, 'I12: an attempt is a run that has to be tried again', about);
}

const aboutOf = (key: string, next: RunRecord, before: RunRecord | undefined) => (): string =>
  `${key}: ${JSON.stringify(before)} → ${JSON.stringify(next)}`;

function checkStart(next: RunRecord, before: RunRecord | undefined, about: () => string): void {
  const isSame = before?.inputsDigest === next.inputsDigest && before?.operation === next.operation;
  const attempts = before && isSame ? before.attempt : 0;
  hold(next.attempt === attempts, 'I2: other inputs do not wait as long as those that failed', about);
  if (!before) return;
  hold(next.seq === before.seq + 1, 'I9: seq has no gaps', about);
  hold(before.phase === 'Idle', 'I9: a run that is on is ended before the next starts', about);
}
