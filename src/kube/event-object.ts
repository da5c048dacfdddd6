import { randomUUID } from 'node:crypto';
import { apiVersionOf, type KubeObject, type Resource } from '../api/object.ts';
import { events } from '../api/resources.ts';
import { formatMicroTime } from '../kit/clock.ts';

/** The object that an Event is about. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** What to record as an Event. */
export interface RecordedEvent {
  readonly regarding: ObjectReference;
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase; cut at 128 characters. */
  readonly reason: string;
  /** The action that was taken or tried, UpperCamelCase; cut at 128 characters. */
  readonly action: string;
  /** Text for users; cut at 1,024 bytes. */
  readonly note: string;
}

/** The `regarding` of an Event about an object of `resource`. kubectl describe finds Events by uid, so omit it only if it is unknown. */
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

/** The process that reports Events. */
export interface EventSource {
  /** Qualified name of the program, for example `drawbridge.example.org/access`. */
  readonly controller: string;
  /** The Pod name of this process; cut at 128 characters. */
  readonly instance: string;
}

/** The events.k8s.io/v1 Event of the first occurrence. `atMs`: when it occurred, epoch ms. */
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

/** A key that is equal for all occurrences of the same series. */
export function seriesKey({ regarding, type, reason, action, note }: RecordedEvent): string {
  const { apiVersion, kind, namespace, name, uid } = regarding;
  return JSON.stringify([apiVersion, kind, namespace, name, uid, type, reason, action, note]);
}

/** A unique name for an Event: the name of its object and a random suffix. Replaces characters that the name of an Event cannot have. */
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
