import type { KubeObject } from '../api/object.ts';
import { own } from '../kit/json-value.ts';
import type { ApiError } from './errors.ts';
import { text } from './fields.ts';
import { isKubeObject } from './list-pages.ts';
import { statusToApiError } from './status-error.ts';

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject; readonly resourceVersion: string }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  | { readonly type: 'ERROR'; readonly error: ApiError };

/** A line that is no event means that the stream is unreliable. */
export function parseWatchEvent(line: string): WatchEvent | undefined {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    return undefined;
  }
  const type = own(event, 'type');
  const object = own(event, 'object');
  if (type === 'ERROR') return { type, error: statusToApiError(object) };
  const resourceVersion = text(own(object, 'metadata'), 'resourceVersion');
  if (resourceVersion === undefined) return undefined;
  if (type === 'BOOKMARK') return { type, resourceVersion };
  if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') return undefined;
  return isKubeObject(object) ? { type, object, resourceVersion } : undefined;
}
