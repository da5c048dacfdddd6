import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Start } from '../wire.ts';
import type { Live } from './live.ts';

/** What all pages share. */
export interface App {
  readonly start: Start;
  /** Undefined for all. */
  readonly namespace: string | undefined;
  readonly live: Live;
  /** The path, such as `/mine` or `/requests/NAMESPACE/KIND/NAME`. */
  readonly path: string;
  /** Goes to another path of the console. */
  go(path: string): void;
  /** Shows a line that screen readers speak, such as `approved`. */
  say(text: string): void;
}

export const AppContext = createContext<App | undefined>(undefined);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error('no App around this component');
  return app;
}

export const requestPath = (key: string): string => `/requests/${key}`;
