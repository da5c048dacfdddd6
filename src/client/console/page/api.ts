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
  const start = await read<Start>(paths.start).catch((error: CallError) => {
    if (error.status !== 401 || given === '' || storedToken() === '') throw error;
    token = storedToken();
    return read<Start>(paths.start);
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
  get isRefused(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

interface CallOptions extends Omit<RequestInit, 'headers'> {
  /** Absent values are left out. */
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/** Rejects with CallError. */
export async function call(path: string, { query = {}, ...options }: CallOptions = {}): Promise<Response> {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  const response = await fetch(`${path}${search}`, { ...options, headers: { [tokenHeader]: token } }).catch(() => {
    throw new CallError(0, 'The console does not answer. If it has ended, start it again in a terminal.');
  });
  if (response.ok) return response;
  const failure = (await response.json().catch(() => ({ message: response.statusText }))) as Failure;
  throw new CallError(response.status, failure.message);
}

export const read = async <T>(path: string, options?: CallOptions): Promise<T> =>
  (await (await call(path, options)).json()) as T;

/** Runs a command of the client. Resolves also if it failed: see `exitCode` and `messages`. */
export const run = (command: RunCall, signal: AbortSignal | null = null): Promise<RunResult> =>
  read(paths.run, { method: 'POST', body: JSON.stringify(command), signal });

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
