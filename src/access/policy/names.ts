import { quote } from '../../kit/errors.ts';

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** A DNS subdomain. Check a reference before a read: it may have any value. */
export const isObjectName = (name: unknown): name is string =>
  typeof name === 'string' && name.length <= 253 && subdomain.test(name);

const MAX_SHOWN = 20;

/** For a message, such as `[devs, sre]`: at most 20, quoted where necessary. */
export function listNames(names: readonly string[]): string {
  const more = names.length > MAX_SHOWN ? `, and ${names.length - MAX_SHOWN} more` : '';
  return `[${names.slice(0, MAX_SHOWN).map(showName).join(', ')}${more}]`;
}

/** For a message: unusual names are quoted, and cut after 64 characters. */
export const showName = (name: string): string => (/^[\w@.:/+-]{1,128}$/.test(name) ? name : quote(name));
