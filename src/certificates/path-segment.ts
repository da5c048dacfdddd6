import { randomBytes, timingSafeEqual } from 'node:crypto';
import { formatTime, parseTime } from '../kit/clock.ts';
import { own } from '../kit/json-value.ts';

/**
 * A random segment that the leader appends to the path of every webhook whose certificate is in the same Secret. Apart from the exceptions
 * of `WebhookPaths`, the server answers only calls with it. So clients that cannot read the webhook configurations cannot call the webhooks
 * (docs/adr/0028-port-budgets.md).
 */
export interface PathSegment {
  /** 32 hexadecimal digits. */
  readonly text: string;
  /**
   * After an upgrade from a version without segments, or a change from certificates in files: epoch ms until which replicas may also answer
   * paths without a segment; 0: never. `WebhookPaths` lists the other conditions. The leader appends the segment 5 minutes before that time.
   */
  readonly unsegmentedUntilMs: number;
}

/** The keys of the Secret's `data`. */
const dataKeys = { text: 'path-segment', unsegmentedUntil: 'fixed-paths-until' } as const;

/** How long after an upgrade replicas may answer paths without a segment, milliseconds. */
const UNSEGMENTED_PATHS_MS = 15 * 60_000;
/**
 * How long before the end of that time the leader appends the segment, milliseconds. So replicas of the old version, which do not answer
 * paths with a segment, have 10 minutes to stop.
 */
const APPEND_BEFORE_END_MS = 5 * 60_000;

/**
 * Creates a random segment. `nowMs`: epoch ms. `isUpgrade`: whether replicas may still run that do not answer paths with this segment,
 * because they are of a version without segments or have their certificate from files.
 */
export function newSegment(nowMs: number, isUpgrade: boolean): PathSegment {
  return {
    text: randomBytes(16).toString('hex'),
    unsegmentedUntilMs: isUpgrade ? nowMs + UNSEGMENTED_PATHS_MS : 0,
  };
}

/** How long an upgrade still delays appending the segment, milliseconds; 0 if it does not. `nowMs`: epoch ms. */
export function upgradeDelayMs({ unsegmentedUntilMs }: PathSegment, nowMs: number): number {
  return Math.max(0, unsegmentedUntilMs - APPEND_BEFORE_END_MS - nowMs);
}

/** A merge patch of the Secret's `data`, in base64; null removes a key. */
export function segmentData({ text, unsegmentedUntilMs }: PathSegment): Record<string, string | null> {
  const base64 = (content: string): string => Buffer.from(content).toString('base64');
  return {
    [dataKeys.text]: base64(text),
    [dataKeys.unsegmentedUntil]: unsegmentedUntilMs === 0 ? null : base64(formatTime(unsegmentedUntilMs)),
  };
}

/** The segment in the Secret's `data`; undefined if it is missing or invalid. A missing or invalid time counts as 0. */
export function readSegment(data: unknown): PathSegment | undefined {
  const text = decoded(own(data, dataKeys.text));
  if (!/^[0-9a-f]{32}$/.test(text)) return undefined;
  return { text, unsegmentedUntilMs: parseTime(decoded(own(data, dataKeys.unsegmentedUntil))) ?? 0 };
}

const decoded = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : '', 'base64').toString('latin1');

/**
 * Splits a path at its second slash: `/validate/abc` has the route `/validate` and the segment `abc`. Without a second slash, the segment
 * is empty.
 */
export function splitPath(path: string): { readonly route: string; readonly segment: string } {
  const slash = path.indexOf('/', 1);
  return slash < 0 ? { route: path, segment: '' } : { route: path.slice(0, slash), segment: path.slice(slash + 1) };
}

/** Whether `text` is one of `segments`. Compares in constant time, so that the duration does not reveal how many characters match. */
export function matchesAny(text: string, segments: Iterable<string>): boolean {
  const bytes = Buffer.from(text);
  let found = false;
  for (const segment of segments) {
    const expected = Buffer.from(segment);
    if (bytes.length === expected.length && timingSafeEqual(bytes, expected)) found = true;
  }
  return found;
}
