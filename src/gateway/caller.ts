import type { IncomingMessage } from 'node:http';

/** The user of a call, as the API server authenticated them. */
export interface Caller {
  readonly username: string;
  /** Empty if the API server sent no uid. */
  readonly uid: string;
  readonly groups: readonly string[];
}

/**
 * The names of the headers in which the API server names the user of a call, in lower case. Of each list, the server reads only the
 * first header that is present in the call.
 */
export interface IdentityHeaders {
  readonly username: readonly string[];
  readonly uid: readonly string[];
  readonly groups: readonly string[];
}

/** Maximum length of a user name, characters. */
const MAX_NAME = 1024;
/** Maximum number of groups of a caller. */
const MAX_GROUPS = 1000;

/**
 * Reads the caller from the headers of the API server. Undefined if the headers name no user or several users, or if the name or the number
 * of groups is over its maximum. Trust the caller only on a connection whose peer has proved to be the API server.
 */
export function readCaller({ headersDistinct }: IncomingMessage, names: IdentityHeaders): Caller | undefined {
  const valuesOf = (headers: readonly string[]): string[] => {
    const used = headers.find((name) => (headersDistinct[name] ?? []).length > 0);
    return (used === undefined ? [] : (headersDistinct[used] ?? [])).map(utf8);
  };
  const [username, ...others] = valuesOf(names.username);
  const groups = valuesOf(names.groups);
  if (!username || username.length > MAX_NAME || others.length > 0 || groups.length > MAX_GROUPS) return undefined;
  return { username, uid: valuesOf(names.uid)[0] ?? '', groups };
}

/** Node reads each byte of a header as one character, and the API server writes UTF-8. */
const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8');
