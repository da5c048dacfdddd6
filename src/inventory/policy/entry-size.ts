import { maxEntryBytes } from '../../api/inventory/names.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { Violation } from './violation.ts';

/**
 * Bytes of an entry's JSON, without managedFields and what only the server writes in the status:
 * its messages must not push an entry over the limit.
 */
export function entryBytes(object: unknown): number {
  if (!isRecord(object)) return 0;
  const { managedFields: _, ...metadata } = recordAt(object, 'metadata');
  const { components: __, conditions: ___, waitingFor: ____, ...status } = recordAt(object, 'status');
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
 * `EntryTooLarge` if a write makes an entry grow above the limit. Above it, what users and
 * components write may change but not grow. An entry that is being deleted has no limit.
 */
export function sizeViolation(before: unknown, after: unknown): Violation | undefined {
  const bytes = entryBytes(after);
  if (bytes <= maxEntryBytes) return undefined;
  if (own(own(after, 'metadata'), 'deletionTimestamp') !== undefined) return undefined;
  if (before !== undefined && contentBytes(after) <= contentBytes(before)) return undefined;
  return {
    code: 'EntryTooLarge',
    message: `the entry would have ${bytes} bytes; at most ${maxEntryBytes} are allowed; move large values to a Secret or ConfigMap and reference it here`,
    status: 413,
  };
}

/** What users and components write. */
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
