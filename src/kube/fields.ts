import { own } from '../kit/json-value.ts';

/** Reading parsed JSON of others: own properties only, and undefined or empty where the shape is not the expected one. */

/** The string under `name`; undefined when it is absent, empty or something else. */
export function text(value: unknown, name: string): string | undefined {
  const found = own(value, name);
  return typeof found === 'string' && found !== '' ? found : undefined;
}

export function number(value: unknown, name: string): number | undefined {
  const found = own(value, name);
  return typeof found === 'number' ? found : undefined;
}

export function array(value: unknown, name: string): readonly unknown[] {
  const found = own(value, name);
  return Array.isArray(found) ? found : [];
}
