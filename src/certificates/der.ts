import { formatTime } from '../kit/clock.ts';

// DER of the ASN.1 types in X.509 certificates. A content over 65,535 bytes throws a RangeError.

/** Tag, length, and content. */
function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), encodedLength(content.length), content]);
}

/** @throws RangeError above 65,535. */
function encodedLength(value: number): Buffer {
  if (value > 0xffff) throw new RangeError(`a DER content has ${value} bytes; the limit is 65,535`);
  if (value < 0x80) return Buffer.from([value]);
  if (value < 0x100) return Buffer.from([0x81, value]);
  return Buffer.from([0x82, value >> 8, value & 0xff]);
}

export const sequence = (...parts: readonly Buffer[]): Buffer => tagged(0x30, ...parts);
/** With one element, or with sorted elements. */
export const setOf = (...parts: readonly Buffer[]): Buffer => tagged(0x31, ...parts);
/** Minimal big-endian two's complement. A positive value with a first bit set needs a leading 0. */
export const integer = (bytes: readonly number[] | Buffer): Buffer => tagged(0x02, Buffer.from(bytes));
export const booleanTrue = tagged(0x01, Buffer.from([0xff]));
export const utf8String = (text: string): Buffer => tagged(0x0c, Buffer.from(text, 'utf8'));
export const octetString = (bytes: Buffer): Buffer => tagged(0x04, bytes);

/** `unused`: bits at the end that do not count. */
export const bitString = (bytes: Buffer, unused = 0): Buffer => tagged(0x03, Buffer.from([unused]), bytes);

/** Wraps whole values in a context-specific tag from 0 to 30. */
export const explicit = (tag: number, ...parts: readonly Buffer[]): Buffer => tagged(0xa0 | tag, ...parts);
/** Replaces the tag of a primitive value by a context-specific tag from 0 to 30. */
export const implicit = (tag: number, bytes: Buffer): Buffer => tagged(0x80 | tag, bytes);

/** From 1950 on, in whole seconds: UTCTime until 2049, then GeneralizedTime (RFC 5280). */
export function time(epochMs: number): Buffer {
  const digits = formatTime(epochMs).replace(/[-:TZ]/g, '');
  const year = Number(digits.slice(0, 4));
  return year < 2050 ? tagged(0x17, ascii(`${digits.slice(2)}Z`)) : tagged(0x18, ascii(`${digits}Z`));
}

const ascii = (text: string): Buffer => Buffer.from(text, 'ascii');

/** Such as `2.5.4.3`. The first two arcs must fit one byte (up to 2.47); arcs are below 2^31. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}
