import { randomBytes, timingSafeEqual } from 'node:crypto';
import { formatTime, parseTime } from '../kit/clock.ts';
import { own } from '../kit/json-value.ts';

/**
 * A random segment that the leader appends to the path of every webhook of the Secret: without it,
 * clients that cannot read the webhook configurations could call the webhooks
 * (docs/adr/0028-port-budgets.md). `WebhookPaths` has the exceptions.
 */
export interface PathSegment {
  /** 32 hexadecimal digits. */
  readonly text: string;
  /**
   * Epoch ms; 0: never. Until then, after an upgrade, replicas may answer paths without a segment.
   */
  readonly unsegmentedUntilMs: number;
}

/** Of the Secret's `data`. */
const dataKeys = { text: 'path-segment', unsegmentedUntil: 'fixed-paths-until' } as const;

/** After an upgrade, replicas may answer paths without a segment for so long. */
const UNSEGMENTED_PATHS_MS = 15 * 60_000;
/** So replicas of the old version, which answer no path with a segment, have 10 minutes to stop. */
const APPEND_BEFORE_END_MS = 5 * 60_000;

/** `isUpgrade`: replicas may still run that do not answer paths with this segment. */
export function newSegment(nowMs: number, isUpgrade: boolean): PathSegment {
  return {
    text: randomBytes(16).toString('hex'),
    unsegmentedUntilMs: isUpgrade ? nowMs + UNSEGMENTED_PATHS_MS : 0,
  };
}

/** How long an upgrade still delays appending the segment. `nowMs`: epoch ms. */
export function upgradeDelayMs({ unsegmentedUntilMs }: PathSegment, nowMs: number): number {
  return Math.max(0, unsegmentedUntilMs - APPEND_BEFORE_END_MS - nowMs);
}

/** Of the Secret's `data`, in base64; null removes a key. */
export function segmentData({ text, unsegmentedUntilMs }: PathSegment): Record<string, string | null> {
  const base64 = (content: string): string => Buffer.from(content).toString('base64');
  return {
    [dataKeys.text]: base64(text),
    [dataKeys.unsegmentedUntil]: unsegmentedUntilMs === 0 ? null : base64(formatTime(unsegmentedUntilMs)),
  };
}

/** A missing or invalid time counts as 0. */
export function readSegment(data: unknown): PathSegment | undefined {
  const text = decoded(own(data, dataKeys.text));
  if (!/^[0-9a-f]{32}$/.test(text)) return undefined;
  return { text, unsegmentedUntilMs: parseTime(decoded(own(data, dataKeys.unsegmentedUntil))) ?? 0 };
}

const decoded = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : '', 'base64').toString('latin1');

/** At the second slash: `/validate/abc` has the route `/validate` and the segment `abc`. */
export function splitPath(path: string): { readonly route: string; readonly segment: string } {
  const slash = path.indexOf('/', 1);
  return slash < 0 ? { route: path, segment: '' } : { route: path.slice(0, slash), segment: path.slice(slash + 1) };
}

/** In constant time, so that the duration does not reveal how many characters match. */
export function matchesAny(text: string, segments: Iterable<string>): boolean {
  const bytes = Buffer.from(text);
  let found = false;
  for (const segment of segments) {
    const expected = Buffer.from(segment);
    if (bytes.length === expected.length && timingSafeEqual(bytes, expected)) found = true;
  }
  return found;
}
