import type { StreamOptions } from './pod-call.ts';

/** The channels of the exec protocol: the first byte of each message. */
export const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;

/** A message to the pod, and how long the process may take to react, milliseconds. */
export interface EndingMessage {
  readonly message: Buffer;
  readonly pauseMs: number;
}

const interrupt = '\x03';
const endOfInput = '\x04';
const quit = '\x1c';
const suspend = '\x1a';

const leaveShell = [
  [interrupt, 50],
  [endOfInput, 100],
] as const;

/**
 * What ends most programs at a terminal, as measured; pauses are in milliseconds. Ctrl-C stops a command or drops a line; three of them
 * also drop a statement of several lines, which sqlite3 would run at Ctrl-D. Then Ctrl-D leaves a shell. The pause between both is needed: a program that changes the mode of the terminal meanwhile reads no Ctrl-D. The second
 * round leaves a program within a shell. Ctrl-\ ends what ignores Ctrl-C. Ctrl-Z gets back to the shell from what ignores both, and the
 * exit of the shell then hangs it up. The next rounds are for shells within shells and for slow nodes, and the rest for `ignoreeof`, which
 * wants eleven.
 */
const keys: readonly (readonly [key: string, pauseMs: number])[] = [
  [interrupt, 50],
  [interrupt, 50],
  ...leaveShell,
  ...leaveShell,
  [quit, 50],
  ...leaveShell,
  [suspend, 50],
  [endOfInput, 50],
  [endOfInput, 50],
  ...Array.from({ length: 4 }, () => leaveShell).flat(),
  ...Array.from({ length: 11 }, () => [endOfInput, 30] as const),
  [endOfInput, 300],
];

/** How long a process without a terminal may take to end after its input has ended, milliseconds. */
const END_OF_STDIN_MS = 500;

/**
 * The messages that end the process of an exec; empty if no message can. Closing the stream does not end the process: the kubelet and the
 * container runtime keep it. `protocol`: the subprotocol of the WebSocket; before v5, only closing the stream ends the input.
 */
export function endingMessages({ stdin, tty }: StreamOptions, protocol: string): readonly EndingMessage[] {
  if (!stdin) return [];
  if (tty) {
    return keys.map(([key, pauseMs]) => ({ message: Buffer.from([channels.stdin, key.charCodeAt(0)]), pauseMs }));
  }
  if (protocol !== 'v5.channel.k8s.io') return [];
  return [{ message: Buffer.from([channels.close, channels.stdin]), pauseMs: END_OF_STDIN_MS }];
}
