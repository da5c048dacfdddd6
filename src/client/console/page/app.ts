import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { RequestRow, RunResult, Start } from '../wire.ts';
import type { Live } from './live.ts';

/** What all pages share. */
export interface App {
  readonly start: Start;
  /** Undefined for all. */
  readonly namespace: string | undefined;
  readonly live: Live;
  /** Requests of this user, newest first, and those that have not ended before the others. */
  readonly mine: readonly RequestRow[];
  /** What this user can decide, oldest first. */
  readonly toDecide: readonly RequestRow[];
  /** The path, such as `/mine` or `/requests/NAMESPACE/KIND/NAME`. */
  readonly path: string;
  go(path: string): void;
  /** Shows a line that screen readers speak, such as `Approved`, and the command that did it. */
  say(text: string, result?: RunResult): void;
}

/** Around the player, which has no frame, there is none: it shows the end of the session itself. */
export const AppContext = createContext({ say: () => undefined } as unknown as App);

export const useApp = (): App => useContext(AppContext);

/** `key`: of a request. Its names have no characters that a path cannot have. */
export const requestPath = (key: string): string => `/requests/${key}`;
