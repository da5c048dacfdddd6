import type { sessionEndTexts } from '../api/gateway/codes.ts';
import { formatTime } from '../kit/clock.ts';

/** Why the gateway ends a stream. The audit line has the code; clients show it where they can. */
export interface StreamEnd {
  readonly code: EndCode;
  /** When the access or the stream ended, epoch ms. */
  readonly atMs: number;
}

export type EndCode = keyof typeof sessionEndTexts;

/** The access stays open. */
const sessionOnlyCodes: readonly EndCode[] = [
  'Idle',
  'Restarting',
  'Unverifiable',
  'RecordingLost',
  'Killed',
  'BadFrame',
  'ClientGone',
];

/** Without a remedy here, the access is over, and only a new request opens it again. */
const remedies: Readonly<Partial<Record<EndCode, string>>> = {
  Expired: 'create a new request',
  Idle: 'run the command again',
  Restarting: 'run the command again',
  Unverifiable: 'the gateway lost contact with the API server; run the command again',
  BadFrame: 'use kubectl 1.31 or newer',
  ClientGone: 'run the command again',
  RecordingLost: 'run the command again, or tell an administrator',
  Killed: 'a user deleted its AccessSession; ask an administrator before you connect again',
};

/** The access is over, not only the session. */
export const endsAccess = (code: EndCode): boolean => !sessionOnlyCodes.includes(code);

/** `access ended at 14:30 UTC: Expired; create a new request` */
export function endText({ code, atMs }: StreamEnd): string {
  const what = endsAccess(code) ? 'access' : 'the session';
  const remedy = remedies[code];
  return `${what} ended at ${timeOfDay(atMs)}: ${code}${remedy === undefined ? '' : `; ${remedy}`}`;
}

export function sessionEndText({
  end,
  exitCode,
}: {
  readonly end?: StreamEnd | undefined;
  readonly exitCode?: number | undefined;
}): string {
  if (end) return endText(end);
  return exitCode === undefined ? 'the session ended' : `the session ended with exit code ${exitCode}`;
}

/** `14:30 UTC`. */
export const timeOfDay = (atMs: number): string => `${formatTime(atMs).slice(11, 16)} UTC`;
