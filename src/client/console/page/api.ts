import { type Failure, paths, type RunCall, type RunResult, type Start, tokenHeader } from '../wire.ts';

/** Of this browser and port. It is worthless once the console has ended. */
const tokenKey = 'token';
const storedToken = (): string => localStorage.getItem(tokenKey) ?? '';

/** From the fragment of the URL, which the page then clears; the next tabs find it in the storage. */
const [, given = ''] = /^#([\w-]{43})$/.exec(location.hash) ?? [];
if (given !== '') history.replaceState(null, '', location.pathname);
let token = given || storedToken();

export const hasToken = (): boolean => token !== '';

/** Any page can link here with a wrong token: it must not replace the one that works. */
export async function connect(): Promise<Start> {
  const start = await get<Start>(paths.start).catch((error: CallError) => {
    if (error.status !== 401 || given === '' || storedToken() === '') throw error;
    token = storedToken();
    return get<Start>(paths.start);
  });
  localStorage.setItem(tokenKey, token);
  return start;
}

/** A refused or failed call; its message is for people. `status`: 0 if the console did not answer. */
export class CallError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Rejects with CallError. `query`: absent values are left out. */
export async function call(
  path: string,
  {
    query = {},
    ...options
  }: Omit<RequestInit, 'headers'> & { readonly query?: Readonly<Record<string, string | undefined>> } = {},
): Promise<Response> {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  const response = await fetch(`${path}${search}`, { ...options, headers: { [tokenHeader]: token } }).catch(() => {
    throw new CallError(0, 'The console does not answer. If it has ended, start it again in a terminal.');
  });
  if (response.ok) return response;
  const failure = (await response.json().catch(() => ({ message: response.statusText }))) as Failure;
  throw new CallError(response.status, failure.message);
}

export const get = async <T>(path: string, query: Readonly<Record<string, string | undefined>> = {}): Promise<T> =>
  (await (await call(path, { query })).json()) as T;

/** Runs a command of the client. Resolves also if it failed: see `exitCode` and `messages`. */
export const run = async (command: RunCall, signal?: AbortSignal): Promise<RunResult> =>
  (await (
    await call(paths.run, { method: 'POST', body: JSON.stringify(command), ...(signal && { signal }) })
  ).json()) as RunResult;

/** The lines of a stream, until it ends. */
export async function* lines(response: Response): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = '';
  const reader = response.body?.getReader();
  // Safari cannot iterate over a stream.
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
    const parts = (rest + decoder.decode(read.value, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts.filter((part) => part !== '');
  }
}
