import type { AccessConfig } from '../../api/access/template-spec.ts';
import { parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { isInWindow, longestBetweenWindowsMs, nextWindowStart } from './start-windows.ts';
import { type CountedVote, countVotes, type EntryCount } from './vote-count.ts';

/** A valid vote that approves the access of a request. */
export interface Approval extends CountedVote {
  /** The longest duration that the voter approves, milliseconds; undefined if the voter set no limit. */
  readonly maxMs: number | undefined;
}

/** Input of `openingOf`. */
export interface OpeningInput {
  /** Creation of the request, epoch ms. */
  readonly createdAtMs: number;
  readonly spec: { readonly startAt?: string; readonly emergency?: boolean };
  readonly config: Pick<AccessConfig, 'approvals' | 'start'>;
  /** Valid approvals, for the current generation of the template. None is by the requester. */
  readonly approvals: readonly Approval[];
  /** When the requester claimed the access, epoch ms; undefined until then. */
  readonly claimedAtMs: number | undefined;
}

/** Whether access may open now, or what the request waits for. `progress`: the approvals so far, for each entry of `approvals.all`. */
export type Opening =
  /** Waits for approvals, until `untilMs`, epoch ms. */
  | { readonly is: 'pending'; readonly progress: readonly EntryCount[]; readonly untilMs: number }
  /**
   * Waits until `atMs`, epoch ms: for `spec.startAt`, or for the next start window. `claimUntilMs`, epoch ms: access does not begin at
   * `atMs`, because the requester must claim it then, before this time.
   */
  | {
      readonly is: 'scheduled';
      readonly progress: readonly EntryCount[];
      readonly atMs: number;
      readonly claimUntilMs?: number;
    }
  /** Waits for the requester to set `spec.claimed`, until `untilMs`, epoch ms. */
  | { readonly is: 'claimable'; readonly progress: readonly EntryCount[]; readonly untilMs: number }
  /** The approvals or the claim were still missing at their deadline `atMs`, epoch ms. The leader denies the request. */
  | { readonly is: 'timedOut'; readonly missing: 'approvals' | 'claim'; readonly atMs: number }
  /** Access may open now. `votes` approved it, for at most `maxMs`, milliseconds (Infinity: no limit). */
  | {
      readonly is: 'due';
      readonly progress: readonly EntryCount[];
      readonly votes: readonly Approval[];
      readonly maxMs: number;
    };

/**
 * Decides whether access may open at `nowMs` (epoch ms). Pure, so a restart does not change the answer. An emergency waits for nothing.
 */
export function openingOf(input: OpeningInput, nowMs: number): Opening {
  const { spec, config, createdAtMs, claimedAtMs } = input;
  if (spec.emergency) return { is: 'due', progress: [], votes: [], maxMs: Number.POSITIVE_INFINITY };
  const approved = approvalProgress(input, nowMs);
  if (approved.is !== 'approved') return approved;
  const { progress, votes, atMs } = approved;
  const startMs = spec.startAt === undefined ? undefined : parseTime(spec.startAt);
  const claimWithinMs = durationMs(config.approvals?.claimWithin);
  const claimUntilMs = claimWithinMs === undefined ? undefined : Math.max(atMs, startMs ?? createdAtMs) + claimWithinMs;
  const awaitsClaim = claimUntilMs !== undefined && !(claimedAtMs !== undefined && claimedAtMs < claimUntilMs);
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

/**
 * The latest time at which access of the request may open, epoch ms: after the longest possible wait for approvals, `spec.startAt`, the
 * claim, and a start window. If the clocks skip a window (`isInWindow`), access may open later than that. Undefined if
 * `countsFromOpening` is false.
 */
export function latestOpeningMs({
  createdAtMs,
  spec,
  config,
}: Omit<OpeningInput, 'approvals' | 'claimedAtMs'>): number | undefined {
  if (!countsFromOpening(spec, config)) return undefined;
  const startMs = spec.startAt === undefined ? undefined : parseTime(spec.startAt);
  const approvedMs = createdAtMs + (durationMs(config.approvals?.pendingFor) ?? 0);
  const claimMs = durationMs(config.approvals?.claimWithin) ?? 0;
  return Math.max(approvedMs, startMs ?? 0) + claimMs + (config.start?.windows ? longestBetweenWindowsMs : 0);
}

/**
 * Whether the granted duration counts from the opening of access instead of from the creation of the request: true for a request that may
 * have to wait, and for an emergency.
 */
export function countsFromOpening(spec: OpeningInput['spec'], config: OpeningInput['config']): boolean {
  return !!(config.approvals || config.start?.windows || spec.startAt !== undefined || spec.emergency);
}

/** The result of `approvalProgress`: approved at `atMs` (epoch ms) by `votes`, pending, or timed out. */
type ApprovalProgress =
  | {
      readonly is: 'approved';
      readonly progress: readonly EntryCount[];
      readonly votes: readonly Approval[];
      readonly atMs: number;
    }
  | Extract<Opening, { is: 'pending' | 'timedOut' }>;

/**
 * Whether the template's approvals are complete. Without `approvals` in the template, a request is approved at its creation. Votes
 * count only if they were created before `pendingFor` has passed.
 */
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

/** Undefined if the text is absent or invalid. The CRD rejects templates with an invalid duration. */
function durationMs(text: string | undefined): number | undefined {
  const parsed = text === undefined ? undefined : parseGoDuration(text);
  return parsed && 'ns' in parsed ? toMilliseconds(parsed.ns) : undefined;
}
