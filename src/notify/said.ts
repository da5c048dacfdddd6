import querystring from 'node:querystring';
import { printable } from '../kit/printable.ts';
import { shorten } from '../kit/shorten.ts';
import type { Sink } from './sink.ts';

const maxLength = 512;
/** Shorter parts of a path, such as `services`, are no secrets, and would mask words. */
const minSecretLength = 9;

/** What a sink answered, for people who may not read its Secret: an answer may echo a request. */
export function saidBy(sink: Sink, text: string): string {
  let masked = text;
  // The length stays, so that no secret which is cut off at the end of `text` gets into the excerpt.
  for (const secret of secretsOf(sink)) masked = masked.replaceAll(secret, '*'.repeat(secret.length));
  return shorten(printable(masked), maxLength);
}

/** As they are sent, decoded, and in base64; the longest first. */
function secretsOf({ address, token, login }: Sink): readonly string[] {
  const parts = address ? `${address.pathname}${address.search}`.split(/[/?&=]/) : [];
  const saslPlain = login && `\0${login.username}\0${login.password}`;
  const credentials = [token, login?.password, saslPlain].filter((secret) => secret !== undefined);
  return [...credentials, ...parts.filter((part) => part.length >= minSecretLength)]
    .flatMap((secret) => [secret, querystring.unescape(secret), Buffer.from(secret).toString('base64')])
    .sort((a, b) => b.length - a.length);
}
