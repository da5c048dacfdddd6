import type { KubeObject } from '../../api/object.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { commonView } from '../stores/common-view.ts';
import type { CommonView } from '../stores/views.ts';

/** A kubeconfig Secret of either cluster. */
export interface SecretView extends CommonView {
  /** Base64, as the API gives it. */
  readonly data: Readonly<Record<string, string>>;
}

export function secretView(object: KubeObject): SecretView | undefined {
  const common = commonView(object);
  if (!common) return undefined;
  const data = own(object, 'data');
  const entries = isRecord(data) ? Object.entries(data) : [];
  return {
    ...common,
    data: Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
  };
}

/** What a key of the Secret holds, as text; undefined when it has no such key. */
export function textOf({ data }: SecretView, key: string): string | undefined {
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
}

export const dataOf = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
