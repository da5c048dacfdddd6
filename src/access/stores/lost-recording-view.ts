import { accessSessionKind, accessSessions } from '../../api/access/access-session.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { type ViewMetadata, viewMetadata } from './access-views.ts';

/** A policy of the chart (`drawbridge-sessions`) lets only the gateway write it. */
export interface LostRecordingView extends ViewMetadata {
  /** Of the request that owns the session. */
  readonly requestUid: string;
  /** RFC 3339. */
  readonly at: string;
}

/** Undefined unless the recording was lost. */
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
