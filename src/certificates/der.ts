import { formatTime } from '../kit/clock.ts';

/** A DER value: tag, length, and content. This file encodes the ASN.1 types that X.509 certificates use. */
function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), length(content.length), content]);
}

/** At most 65,535. */
function length(value: number): Buffer {
  if (value < 0x80) return Buffer.from([value]);
  if (value < 0x100) return Buffer.from([0x81, value]);
  return Buffer.from([0x82, value >> 8, value & 0xff]);
}

export const sequence = (...parts: readonly Buffer[]): Buffer => tagged(0x30, ...parts);
export const set = (...parts: readonly Buffer[]): Buffer => tagged(0x31, ...parts);
export const integer = (bytes: readonly number[] | Buffer): Buffer => tagged(0x02, Buffer.from(bytes));
export const booleanTrue = tagged(0x01, Buffer.from([0xff]));
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text, 'utf8'));
export const octets = (bytes: Buffer): Buffer => tagged(0x04, bytes);

/** `unused` is the number of bits at the end that do not count. */
export const bits = (bytes: Buffer, unused = 0): Buffer => tagged(0x03, Buffer.from([unused]), bytes);

/** A context-specific tag: `explicit` wraps whole values, `implicit` replaces the tag of a primitive one. */
export const explicit = (tag: number, ...parts: readonly Buffer[]): Buffer => tagged(0xa0 | tag, ...parts);
export const implicit = (tag: number, bytes: Buffer): Buffer => tagged(0x80 | tag, bytes);

/** Whole seconds, as RFC 5280 requires: UTCTime until 2049, GeneralizedTime from 2050 on. */
export function time(epochMs: number): Buffer {
  const digits = formatTime(epochMs).replace(/[-:TZ]/g, '');
  return digits < '2050' ? tagged(0x17, ascii(`${digits.slice(2)}Z`)) : tagged(0x18, ascii(`${digits}Z`));
}

const ascii = (text: string): Buffer => Buffer.from(text, 'ascii');

/** An object identifier in dotted form, such as `2.5.4.3`. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}
