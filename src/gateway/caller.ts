import type { IncomingMessage } from 'node:http';

/** The user of a call, as the API server authenticated them. */
export interface Caller {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

/** The names of the headers in which the API server names the user of a call, in lower case. */
export interface IdentityHeaders {
  readonly username: readonly string[];
  readonly uid: readonly string[];
  readonly groups: readonly string[];
}

const MAX_NAME = 1024;
const MAX_GROUPS = 1000;

/**
 * Reads the caller from the headers of the API server. Undefined if they name no user, or more than one. Trust it only on a connection
 * with the front-proxy certificate.
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
