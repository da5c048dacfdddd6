import type { StreamOptions } from './pod-call.ts';

/** The first byte of each message of the exec protocol. */
export const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** A message to the pod, and how long the process may take to react. */
export interface EndingMessage {
  readonly message: Buffer;
  readonly pauseMs: number;
}

const interrupt = '\x03';
const endOfInput = '\x04';
const quit = '\x1c';
const suspend = '\x1a';

/**
 * Ctrl-C stops a command or drops a line, then Ctrl-D leaves a shell. In between, a program
 * restores the mode of the terminal; until then it reads no Ctrl-D.
 */
const leaveShell = [
  [interrupt, 50],
  [endOfInput, 100],
] as const;

/** What ends most programs at a terminal, as measured. */
const keys: readonly (readonly [key: string, pauseMs: number])[] = [
  // Three times Ctrl-C also drop a statement of several lines, which sqlite3 would run at Ctrl-D.
  [interrupt, 50],
  [interrupt, 50],
  ...leaveShell,
  // A program within a shell.
  ...leaveShell,
  // A program that ignores Ctrl-C.
  [quit, 50],
  ...leaveShell,
  // A program that ignores both: the shell that gets the terminal back hangs it up at its exit.
  [suspend, 50],
  [endOfInput, 50],
  [endOfInput, 50],
  // Shells within shells, and slow nodes.
  ...Array.from({ length: 4 }, () => leaveShell).flat(),
  // `ignoreeof` wants eleven.
  ...Array.from({ length: 11 }, () => [endOfInput, 30] as const),
  [endOfInput, 300],
];

/** How long a process without a terminal may take to end after its input has ended. */
const END_OF_STDIN_MS = 500;

/**
 * What ends the process of an exec; empty if nothing can. Closing the stream does not: the kubelet
 * keeps the process. Before `protocol` v5, only closing the stream ends the input.
 */
export function endingMessages({ stdin, tty }: StreamOptions, protocol: string): readonly EndingMessage[] {
  if (!stdin) return [];
  if (tty) {
    return keys.map(([key, pauseMs]) => ({ message: Buffer.from([channels.stdin, key.charCodeAt(0)]), pauseMs }));
  }
  if (protocol !== 'v5.channel.k8s.io') return [];
  return [{ message: Buffer.from([channels.close, channels.stdin]), pauseMs: END_OF_STDIN_MS }];
}
