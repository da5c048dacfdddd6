import type { KubeObject } from '../api/object.ts';
import type { ApiError } from './errors.ts';
import { isKubeObject } from './list-pages.ts';
import { statusToApiError } from './status-error.ts';

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject; readonly resourceVersion: string }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }
  | { readonly type: 'ERROR'; readonly error: ApiError };

/** One line of a watch stream, or undefined when it is not an event: then the stream can no longer be trusted. */
export function parseWatchEvent(line: string): WatchEvent | undefined {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof event !== 'object' || event === null || !('type' in event) || !('object' in event)) return undefined;
  const { type, object } = event;
  if (type === 'ERROR') return { type, error: statusToApiError(object) };
  const resourceVersion = versionOf(object);
  if (resourceVersion === undefined) return undefined;
  if (type === 'BOOKMARK') return { type, resourceVersion };
  if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') return undefined;
  return isKubeObject(object) ? { type, object, resourceVersion } : undefined;
}

function versionOf(object: unknown): string | undefined {
  if (typeof object !== 'object' || object === null || !('metadata' in object)) return undefined;
  const { metadata } = object;
  if (typeof metadata !== 'object' || metadata === null || !('resourceVersion' in metadata)) return undefined;
  const { resourceVersion } = metadata;
  return typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : undefined;
}
