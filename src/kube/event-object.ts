import { randomUUID } from 'node:crypto';
import { apiVersionOf, type KubeObject, type Resource } from '../api/object.ts';
import { events } from '../api/resources.ts';
import { formatMicroTime } from '../kit/clock.ts';

export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

export interface RecordedEvent {
  readonly regarding: ObjectReference;
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase; cut at 128 characters. */
  readonly reason: string;
  /** Taken or tried; UpperCamelCase, cut at 128 characters. */
  readonly action: string;
  /** For users; cut at 1,024 bytes. */
  readonly note: string;
}

/** kubectl describe finds Events by uid, so omit it only if it is unknown. */
export function regarding(
  resource: Resource,
  {
    namespace,
    name,
    uid,
  }: { readonly namespace?: string | undefined; readonly name: string; readonly uid?: string | undefined },
): ObjectReference {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    ...(namespace === undefined ? {} : { namespace }),
    name,
    ...(uid === undefined ? {} : { uid }),
  };
}

const MAX_NOTE_BYTES = 1024;
const MAX_REASON = 128;
const MAX_NAME = 200;

export interface EventSource {
  /** Qualified name of the program, for example `drawbridge.example.org/access`. */
  readonly controller: string;
  /** The Pod name; cut at 128 characters. */
  readonly instance: string;
}

/** An events.k8s.io/v1 Event. `atMs`: epoch ms. */
export function eventObject(event: RecordedEvent, source: EventSource, atMs: number): KubeObject {
  const { regarding } = event;
  return {
    apiVersion: apiVersionOf(events),
    kind: events.kind,
    // Events about cluster-scoped objects are in "default".
    metadata: { namespace: regarding.namespace ?? 'default', name: eventName(regarding.name) },
    eventTime: formatMicroTime(atMs),
    reportingController: source.controller,
    reportingInstance: source.instance.slice(0, MAX_REASON),
    action: event.action.slice(0, MAX_REASON),
    reason: event.reason.slice(0, MAX_REASON),
    regarding,
    note: cutBytes(event.note, MAX_NOTE_BYTES),
    type: event.type,
  };
}

/** Equal for all occurrences of the same series. */
export function seriesKey({ regarding, type, reason, action, note }: RecordedEvent): string {
  const { apiVersion, kind, namespace, name, uid } = regarding;
  return JSON.stringify([apiVersion, kind, namespace, name, uid, type, reason, action, note]);
}

/** Unique: the name of the object, as an Event can have it, and a random suffix. */
function eventName(name: string): string {
  const stem = name
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .replace(/^[.-]+|[.-]+$/g, '')
    .slice(0, MAX_NAME);
  return `${(stem || 'object').replace(/[.-]+$/, '').replace(/([.-])[.-]+/g, '$1')}.${randomUUID().slice(0, 13)}`;
}

function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const ellipsis = '…';
  // A character cut in half decodes to U+FFFD.
  return `${bytes
    .subarray(0, maxBytes - Buffer.byteLength(ellipsis))
    .toString()
    .replace(/\uFFFD$/, '')}${ellipsis}`;
}
