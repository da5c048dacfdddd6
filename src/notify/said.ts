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

/** In the forms in which they are sent or commonly echoed, the longest first. */
function secretsOf({ address, token, login }: Sink): readonly string[] {
  const credentials = [token, login?.password].filter((secret) => secret !== undefined);
  const parts = address === undefined ? [] : `${address.pathname}${address.search}`.split(/[/?&=]/);
  const plain = [...credentials, ...parts.filter((part) => part.length >= minSecretLength)];
  const encoded = plain.flatMap((secret) => [
    ...[secret, decoded(secret), encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)],
    Buffer.from(secret).toString('base64'),
  ]);
  const saslPlain = login ? [Buffer.from(`\0${login.username}\0${login.password}`).toString('base64')] : [];
  return [...encoded, ...saslPlain].sort((a, b) => b.length - a.length);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
