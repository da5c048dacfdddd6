import { quote } from './errors.ts';

/** Exact to a billionth, as Kubernetes' resource.Quantity. */
export interface Quantity {
  readonly nano: bigint;
}

export type ParsedQuantity = { readonly quantity: Quantity } | { readonly error: string };

const ONE = 10n ** 9n;
/** Kubernetes caps larger amounts at 2^63 - 1. */
const CAP = ((1n << 63n) - 1n) * ONE;
const MAX_LENGTH = 256;
const ALLOWED =
  'allowed are numbers with no suffix, one of n u m k M G T P E, one of Ki Mi Gi Ti Pi Ei, or an exponent, for example "500m", "2Gi", or "1e3"';

const DECIMAL_EXPONENTS: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);
const BINARY_SUFFIXES: readonly string[] = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** An int-or-string. Rounds up (away from zero) and caps, as Kubernetes does. */
export function parseQuantity(value: unknown): ParsedQuantity {
  if (typeof value === 'number' && Number.isSafeInteger(value)) {
    return { quantity: { nano: capped(BigInt(value) * ONE) } };
  }
  if (typeof value !== 'string') return { error: `a quantity must be a string or a whole number; ${ALLOWED}` };
  const [, sign, whole = '', fraction = '', suffix = ''] =
    (value.length <= MAX_LENGTH && /^([-+]?)([0-9]*)(?:\.([0-9]*))?(\D.*)?$/.exec(value)) || [];
  const scale = sign === undefined || whole + fraction === '' ? undefined : scaleOf(suffix);
  if (scale === undefined) return { error: `${quote(value)} is not a quantity; ${ALLOWED}` };
  const digits = BigInt(whole + fraction);
  const magnitude =
    'factor' in scale
      ? divideUp(digits * ONE * scale.factor, 10n ** BigInt(fraction.length))
      : shifted(digits, scale.exponent - fraction.length + 9);
  return { quantity: { nano: capped(sign === '-' ? -magnitude : magnitude) } };
}

/** A power of 1024, or the exponent of a power of ten. */
type Scale = { readonly factor: bigint } | { readonly exponent: number };

function scaleOf(suffix: string): Scale | undefined {
  const exponent = DECIMAL_EXPONENTS.get(suffix);
  if (exponent !== undefined) return { exponent };
  const binary = BINARY_SUFFIXES.indexOf(suffix);
  if (binary >= 0) return { factor: 1024n ** BigInt(binary + 1) };
  if (/^[eE][-+]?[0-9]+$/.test(suffix)) return { exponent: Number(suffix.slice(1)) };
  return undefined;
}

/** Rounds up. The exponent is untrusted, so it is clamped where the result stays the same. */
function shifted(digits: bigint, exponent: number): bigint {
  if (digits === 0n) return 0n;
  const bounded = BigInt(Math.max(-2 * MAX_LENGTH, Math.min(2 * MAX_LENGTH, exponent)));
  return bounded >= 0n ? digits * 10n ** bounded : divideUp(digits, 10n ** -bounded);
}

function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

function capped(nano: bigint): bigint {
  if (nano > CAP) return CAP;
  return nano < -CAP ? -CAP : nano;
}

/** Negative if `a < b`. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  if (a.nano === b.nano) return 0;
  return a.nano < b.nano ? -1 : 1;
}
