import type { AccessConfig } from '../../api/access/template-spec.ts';
import { parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { isInWindow, longestBetweenWindowsMs, nextWindowStart } from './start-windows.ts';
import { type CountedVote, countVotes, type EntryCount } from './vote-count.ts';

export interface Approval extends CountedVote {
  /** Milliseconds; the longest duration that the voter approves. */
  readonly maxMs: number | undefined;
}

export interface OpeningInput {
  /** Epoch ms. */
  readonly createdAtMs: number;
  readonly spec: { readonly startAt?: string; readonly emergency?: boolean; readonly claimed?: boolean };
  readonly config: Pick<AccessConfig, 'approvals' | 'start'>;
  /** Valid, for the current generation of the template, and not by the requester. */
  readonly approvals: readonly Approval[];
}

/** Times are epoch ms. `progress`: the approvals so far, for each entry of `approvals.all`. */
export type Opening =
  /** Waits for approvals. */
  | { readonly is: 'pending'; readonly progress: readonly EntryCount[]; readonly untilMs: number }
  /** For `spec.startAt` or a start window. With `claimUntilMs`, the requester must then claim. */
  | {
      readonly is: 'scheduled';
      readonly progress: readonly EntryCount[];
      readonly atMs: number;
      readonly claimUntilMs?: number;
    }
  /** Waits for the requester to set `spec.claimed`. */
  | { readonly is: 'claimable'; readonly progress: readonly EntryCount[]; readonly untilMs: number }
  /** Not there at the deadline `atMs`: the leader denies the request. */
  | { readonly is: 'timedOut'; readonly missing: 'approvals' | 'claim'; readonly atMs: number }
  /** Access may open now, for at most `maxMs` milliseconds (Infinity: no limit). */
  | {
      readonly is: 'due';
      readonly progress: readonly EntryCount[];
      readonly votes: readonly Approval[];
      readonly maxMs: number;
    };

/**
 * Whether access may open now. Pure, so a restart does not change the answer:
 *   pending ─→ scheduled (startAt) ─→ claimable ─→ scheduled (window) ─→ due (emergency: at once)
 *      └──────────────────────────────────┴─→ timedOut
 */
export function openingOf(input: OpeningInput, nowMs: number): Opening {
  const { spec, config, createdAtMs } = input;
  if (spec.emergency) return { is: 'due', progress: [], votes: [], maxMs: Number.POSITIVE_INFINITY };
  const approved = approvalProgress(input, nowMs);
  if (approved.is !== 'approved') return approved;
  const { progress, votes, atMs } = approved;
  const startMs = spec.startAt === undefined ? undefined : parseTime(spec.startAt);
  const claimWithinMs = durationMs(config.approvals?.claimWithin);
  const claimUntilMs = claimWithinMs === undefined ? undefined : Math.max(atMs, startMs ?? createdAtMs) + claimWithinMs;
  // The webhook denies late claims, so one that the leader sees late was in time.
  const awaitsClaim = claimUntilMs !== undefined && !spec.claimed;
  if (startMs !== undefined && nowMs < startMs)
    return { is: 'scheduled', progress, atMs: startMs, ...(awaitsClaim ? { claimUntilMs } : {}) };
  if (awaitsClaim && nowMs >= claimUntilMs) return { is: 'timedOut', missing: 'claim', atMs: claimUntilMs };
  if (awaitsClaim) return { is: 'claimable', progress, untilMs: claimUntilMs };
  const windows = config.start?.windows;
  if (windows && !isInWindow(windows, nowMs)) {
    const opensMs = nextWindowStart(windows, nowMs);
    // Unreachable with the CRD, which rejects windows that never open.
    if (opensMs === undefined) return { is: 'timedOut', missing: 'claim', atMs: nowMs };
    return { is: 'scheduled', progress, atMs: opensMs };
  }
  const maxMs = Math.min(...votes.map((vote) => vote.maxMs ?? Number.POSITIVE_INFINITY), Number.POSITIVE_INFINITY);
  return { is: 'due', progress, votes, maxMs };
}

/** Epoch ms, after the longest possible waits; later only if the clocks skip a window. */
export function latestOpeningMs({ createdAtMs, spec, config }: Omit<OpeningInput, 'approvals'>): number | undefined {
  if (!countsFromOpening(spec, config)) return undefined;
  const startMs = spec.startAt === undefined ? undefined : parseTime(spec.startAt);
  const approvedMs = createdAtMs + (durationMs(config.approvals?.pendingFor) ?? 0);
  const claimMs = durationMs(config.approvals?.claimWithin) ?? 0;
  return Math.max(approvedMs, startMs ?? 0) + claimMs + (config.start?.windows ? longestBetweenWindowsMs : 0);
}

/** Else the granted duration counts from the creation of the request. */
export function countsFromOpening(spec: OpeningInput['spec'], config: OpeningInput['config']): boolean {
  return !!(config.approvals || config.start?.windows || spec.startAt !== undefined || spec.emergency);
}

/** Epoch ms. */
type ApprovalProgress =
  | {
      readonly is: 'approved';
      readonly progress: readonly EntryCount[];
      readonly votes: readonly Approval[];
      readonly atMs: number;
    }
  | Extract<Opening, { is: 'pending' | 'timedOut' }>;

/** Votes count only if they were created before `pendingFor` had passed. */
function approvalProgress(
  { config: { approvals: asked }, approvals, createdAtMs }: OpeningInput,
  nowMs: number,
): ApprovalProgress {
  if (!asked) return { is: 'approved', progress: [], votes: [], atMs: createdAtMs };
  const untilMs = createdAtMs + (durationMs(asked.pendingFor) ?? 0);
  const { progress, met } = countVotes(
    asked.all,
    approvals.filter((vote) => vote.createdAtMs < untilMs),
  );
  if (met) return { is: 'approved', progress, ...met };
  return nowMs < untilMs
    ? { is: 'pending', progress, untilMs }
    : { is: 'timedOut', missing: 'approvals', atMs: untilMs };
}

/** The CRD rejects templates with an invalid duration. */
function durationMs(text: string | undefined): number | undefined {
  const parsed = text === undefined ? undefined : parseGoDuration(text);
  return parsed && 'ns' in parsed ? toMilliseconds(parsed.ns) : undefined;
}
