import type { KubeObject } from '../api/object.ts';
import { isRecord } from '../kit/json-value.ts';

/** Lines of one description. */
const maxChanges = 12;
const maxValue = 60;
/** Set by the apiserver with every write. */
const bookkeeping = new Set(['managedFields', 'resourceVersion', 'generation', 'uid', 'creationTimestamp']);

/**
 * What is different in `now`, field by field: `spec.size: 1 → 2`, `metadata.labels.app: "a" added`. At most 12 lines, the last one
 * says how many more there are. With `isSecret` it tells which fields, and no value of any.
 */
export function changesBetween(before: KubeObject | undefined, now: KubeObject, isSecret: boolean): string[] {
  const changes: string[] = [];
  compare(relevant(before), relevant(now), '', (path, was, is) => {
    if (isSecret) changes.push(`${path} ${was === undefined ? 'added' : is === undefined ? 'removed' : 'changed'}`);
    else if (was === undefined) changes.push(`${path}: ${shown(is)} added`);
    else if (is === undefined) changes.push(`${path}: ${shown(was)} removed`);
    else changes.push(`${path}: ${shown(was)} → ${shown(is)}`);
  });
  const more = changes.length - maxChanges;
  return more > 0 ? [...changes.slice(0, maxChanges), `${more} more`] : changes;
}

function relevant(object: KubeObject | undefined): Record<string, unknown> {
  if (!object) return {};
  const { apiVersion: _, kind: __, metadata, ...fields } = object;
  const { name: ___, namespace: ____, ...kept } = metadata;
  const own = Object.fromEntries(Object.entries(kept).filter(([field]) => !bookkeeping.has(field)));
  return { metadata: own, ...fields };
}

function compare(
  was: unknown,
  is: unknown,
  path: string,
  report: (path: string, was: unknown, is: unknown) => void,
): void {
  if (!isRecord(was) && !isRecord(is)) {
    if (JSON.stringify(was) !== JSON.stringify(is)) report(path, was, is);
    return;
  }
  if ((was !== undefined && !isRecord(was)) || (is !== undefined && !isRecord(is))) {
    report(path, was, is);
    return;
  }
  const fields = new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})]);
  if (fields.size === 0 && was === undefined && path !== '') report(path, was, is);
  for (const field of fields) {
    const at = (object: unknown) => (isRecord(object) && Object.hasOwn(object, field) ? object[field] : undefined);
    compare(at(was), at(is), path === '' ? field : `${path}.${field}`, report);
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null';
  return text.length > maxValue ? `${text.slice(0, maxValue)}…` : text;
}
