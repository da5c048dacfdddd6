import { accessSessionKind, accessSessions } from '../../api/access/access-session.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { type ViewMetadata, viewMetadata } from './access-views.ts';

/**
 * An AccessSession whose recording was lost. The policy `drawbridge-sessions` of the chart rejects creations and updates by users other than
 * the gateway, except updates by the garbage collector.
 */
export interface LostRecordingView extends ViewMetadata {
  /** The uid of the request that owns the session. */
  readonly requestUid: string;
  /** When the recording was lost, RFC 3339. */
  readonly at: string;
}

/** The projection of an AccessSession. Undefined if its recording was not lost, or if it violates its schema. */
export function viewLostRecording(object: KubeObject): LostRecordingView | undefined {
  const metadata = viewMetadata(object);
  const read = readObject(accessSessionKind, {
    ...object,
    apiVersion: apiVersionOf(accessSessions),
    kind: accessSessions.kind,
  });
  if (!metadata || !read.ok || !read.value.status?.recordingLost) return undefined;
  const requestUid = object.metadata.ownerReferences?.[0]?.uid;
  return requestUid === undefined ? undefined : { ...metadata, requestUid, at: read.value.status.recordingLost.at };
}
