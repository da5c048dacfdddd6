import { maxEntryBytes } from '../../api/inventory/names.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { Violation } from './violation.ts';

/**
 * Size of an entry as it counts for the limit: bytes of its JSON without managedFields, and without what the server says in the status,
 * or an entry at its limit would be too large for as long as something is said of it.
 */
export function entryBytes(object: unknown): number {
  if (!isRecord(object)) return 0;
  const { managedFields: _, ...metadata } = recordAt(object, 'metadata');
  const { components: __, conditions: ___, ...status } = recordAt(object, 'status');
  return jsonBytes({
    ...object,
    ...(isRecord(own(object, 'metadata')) ? { metadata } : {}),
    ...(isRecord(own(object, 'status')) ? { status } : {}),
  });
}

function recordAt(object: unknown, field: string): Readonly<Record<string, unknown>> {
  const found = own(object, field);
  return isRecord(found) ? found : {};
}

/**
 * An entry above the limit may not grow any further by what people and components put into it. It may shrink, it may be let go of,
 * and the server may say in its status what is wrong.
 */
export function sizeViolation(before: unknown, after: unknown): Violation | undefined {
  const bytes = entryBytes(after);
  if (bytes <= maxEntryBytes) return undefined;
  if (own(own(after, 'metadata'), 'deletionTimestamp') !== undefined) return undefined;
  if (before !== undefined && contentBytes(after) <= contentBytes(before)) return undefined;
  return {
    code: 'EntryTooLarge',
    message: `the entry would have ${bytes} bytes, and may have ${maxEntryBytes}; keep what is large in a Secret or ConfigMap and put its name here`,
    status: 413,
  };
}

/** Without what the server itself writes. */
function contentBytes(object: unknown): number {
  const metadata = own(object, 'metadata');
  return jsonBytes([
    own(object, 'spec'),
    own(own(object, 'status'), 'outputs'),
    own(metadata, 'labels'),
    own(metadata, 'annotations'),
  ]);
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');
