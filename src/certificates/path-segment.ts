import { randomBytes, timingSafeEqual } from 'node:crypto';
import { formatTime, parseTime } from '../kit/clock.ts';
import { own } from '../kit/json-value.ts';

/** The last segment of the path of every webhook of an installation. */
export interface PathSegment {
  readonly text: string;
  /**
   * The server may also answer paths without a segment until this instant (epoch ms); 0: never. `WebhookPaths` has the further conditions
   * and the exception. Configurations carry the segment from five minutes before it, when every replica of a version without segments
   * must have stopped.
   */
  readonly fixedUntilMs: number;
}

/** The keys of the Secret's `data`. */
const keys = { text: 'path-segment', fixedUntil: 'fixed-paths-until' } as const;

const FIXED_PATHS_MS = 15 * 60_000;
const CARRY_BEFORE_MS = 5 * 60_000;

/** @param isUpgrade Whether the configurations have paths without a segment, as a version without segments writes them. */
export const newSegment = (nowMs: number, isUpgrade: boolean): PathSegment => ({
  text: randomBytes(16).toString('hex'),
  fixedUntilMs: isUpgrade ? nowMs + FIXED_PATHS_MS : 0,
});

/** Milliseconds until configurations carry the segment; 0: at once. */
export const upgradeDelayMs = ({ fixedUntilMs }: PathSegment, nowMs: number): number =>
  Math.max(0, fixedUntilMs - CARRY_BEFORE_MS - nowMs);

/** A merge patch of `data`; null removes a key. */
export const segmentData = ({ text, fixedUntilMs }: PathSegment): Record<string, string | null> => ({
  [keys.text]: Buffer.from(text).toString('base64'),
  [keys.fixedUntil]: fixedUntilMs === 0 ? null : Buffer.from(formatTime(fixedUntilMs)).toString('base64'),
});

/** The segment in the Secret's `data`; undefined if there is none or it does not have the server's format. */
export function readSegment(data: unknown): PathSegment | undefined {
  const text = decoded(own(data, keys.text));
  if (!/^[0-9a-f]{32}$/.test(text)) return undefined;
  return { text, fixedUntilMs: parseTime(decoded(own(data, keys.fixedUntil))) ?? 0 };
}

const decoded = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : '', 'base64').toString('latin1');

/** A webhook's path without its segment, and the segment; empty if there is none. The path of a route has one part. */
export function splitPath(path: string): { readonly route: string; readonly segment: string } {
  const slash = path.indexOf('/', 1);
  return slash < 0 ? { route: path, segment: '' } : { route: path.slice(0, slash), segment: path.slice(slash + 1) };
}

/** Whether `text` is one of `segments`. Compares in constant time, so that timing does not reveal how much of it matches. */
export function isOneOf(text: string, segments: Iterable<string>): boolean {
  const bytes = Buffer.from(text);
  let found = false;
  for (const segment of segments) {
    const expected = Buffer.from(segment);
    if (bytes.length === expected.length && timingSafeEqual(bytes, expected)) found = true;
  }
  return found;
}
