import { own } from '../kit/json-value.ts';

/** For untrusted parsed JSON: own properties only, and nothing for an unexpected shape. */

/** An empty string counts as absent. */
export function text(value: unknown, name: string): string | undefined {
  const found = own(value, name);
  return typeof found === 'string' && found !== '' ? found : undefined;
}

export function number(value: unknown, name: string): number | undefined {
  const found = own(value, name);
  return typeof found === 'number' ? found : undefined;
}
