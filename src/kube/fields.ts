import { own } from '../kit/json-value.ts';

/** Reads untrusted parsed JSON: own properties only; undefined if the shape is unexpected. */

/** The string at `name`; undefined if it is absent, empty, or not a string. */
export function text(value: unknown, name: string): string | undefined {
  const found = own(value, name);
  return typeof found === 'string' && found !== '' ? found : undefined;
}

/** The number at `name`; undefined if it is absent or not a number. */
export function number(value: unknown, name: string): number | undefined {
  const found = own(value, name);
  return typeof found === 'number' ? found : undefined;
}
