import { useEffect, useState } from 'preact/hooks';
import { type LiveLine, paths, type RequestRow, type SessionRow } from '../wire.ts';
import { CallError, call, lines } from './api.ts';
import { after, setServerTime } from './time.ts';

/** What the cluster has now, as far as the page knows. */
export interface Live {
  /** By key. A new map after each change. */
  readonly requests: ReadonlyMap<string, RequestRow>;
  readonly sessions: ReadonlyMap<string, SessionRow>;
  /** False while the first rows still arrive. */
  readonly synced: boolean;
  /** Why the rows may be old; undefined while they are live. */
  readonly problem: string | undefined;
  /** The console has ended, or refuses the token: only a person can go on. */
  readonly refused: boolean;
}

const none: Live = { requests: new Map(), sessions: new Map(), synced: false, problem: undefined, refused: false };

/** The server sends a line every 5 s. */
const SILENT_MS = 12_000;
const RETRY_MS = 1000;
/** In a row, until a person must open the console again. */
const MAX_FAILURES = 30;
/** A page that is hidden for longer frees its connection. */
const HIDDEN_MS = 60_000;
/** Rows that arrive meanwhile are shown together: each time, all lists are made again. */
const SHOW_MS = 100;

/** Follows the requests and sessions of a namespace, or of all; reconnects until it is unmounted. */
export function useLive(namespace: string | undefined, enabled: boolean): Live {
  const [live, setLive] = useState(none);
  useEffect(() => {
    if (!enabled) return undefined;
    const stop = new AbortController();
    void follow(namespace, stop.signal, setLive);
    return () => stop.abort();
  }, [namespace, enabled]);
  return live;
}

async function follow(namespace: string | undefined, stop: AbortSignal, set: (live: Live) => void): Promise<void> {
  let live = none;
  const change = (next: Partial<Live>): void => {
    if (stop.aborted) return;
    live = { ...live, ...next };
    set(live);
  };
  change({});
  let failures = 0;
  while (!stop.aborted) {
    await visible(stop);
    const connection = new AbortController();
    const end = (): void => connection.abort();
    const signal = AbortSignal.any([stop, connection.signal]);
    let hidden = (): void => undefined;
    const onVisibility = (): void => {
      hidden();
      if (document.hidden) hidden = after(HIDDEN_MS, end);
    };
    document.addEventListener('visibilitychange', onVisibility, { signal });
    let silent = after(SILENT_MS, end);
    // The first lines of a connection replace what an earlier one told.
    const [requests, sessions] = [new Map<string, RequestRow>(), new Map<string, SessionRow>()];
    const isFirst = !live.synced;
    let synced = false;
    let cancelShow: (() => void) | undefined;
    const show = (): void => {
      cancelShow = undefined;
      change({ requests: new Map(requests), sessions: new Map(sessions), synced: live.synced || synced });
    };
    try {
      const response = await call(paths.live, { query: { namespace }, signal });
      for await (const text of lines(response)) {
        silent();
        silent = after(SILENT_MS, end);
        const line = JSON.parse(text) as LiveLine;
        failures = 0;
        if ('beat' in line) {
          setServerTime(line.beat.nowMs);
          if (synced || isFirst || line.beat.failing) change({ problem: line.beat.failing });
          continue;
        }
        if ('synced' in line) synced = true;
        else if ('requests' in line) update(requests, line.requests, line.removed);
        else update(sessions, line.sessions, line.removedSessions);
        if (synced || isFirst) cancelShow ??= after(SHOW_MS, show);
      }
      change({ problem: 'The console ended the connection; connecting again' });
    } catch (error) {
      if (document.hidden && !stop.aborted) {
        change({ problem: 'Connecting again' });
        continue;
      }
      const failure =
        error instanceof CallError ? error : new CallError(0, 'The console does not answer; connecting again');
      failures = failure.status === 0 ? failures + 1 : 0;
      // Another program may take the port of a console that has ended.
      const refused = failure.isRefused || failures > MAX_FAILURES;
      change({ problem: failure.message, refused });
      if (refused) return;
    } finally {
      end();
      silent();
      cancelShow?.();
    }
    await new Promise<void>((resolve) => after(RETRY_MS, resolve));
  }
}

/** A browser has six connections to a console, and each page that a person sees keeps one. */
async function visible(stop: AbortSignal): Promise<void> {
  while (document.hidden && !stop.aborted) {
    await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
  }
}

function update<T extends { readonly key: string }>(
  map: Map<string, T>,
  rows: readonly T[],
  removed: readonly string[] = [],
): void {
  for (const row of rows) map.set(row.key, row);
  for (const key of removed) map.delete(key);
}
