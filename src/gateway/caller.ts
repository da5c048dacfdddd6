import type { IncomingMessage } from 'node:http';

/** As the API server authenticated them. */
export interface Caller {
  readonly username: string;
  /** Empty if the API server sent no uid. */
  readonly uid: string;
  readonly groups: readonly string[];
}

/** In lower case. Of each list, only the first header that the call has counts. */
export interface IdentityHeaders {
  readonly username: readonly string[];
  readonly uid: readonly string[];
  readonly groups: readonly string[];
}

const MAX_NAME = 1024;
const MAX_GROUPS = 1000;

/** Trust it only on a connection of the API server. No caller without exactly one user name. */
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

/** Node reads each byte of a header as one character; the API server writes UTF-8. */
const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8');
