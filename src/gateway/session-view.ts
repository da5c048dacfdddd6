import {
  type AccessSession,
  accessSessionKind,
  accessSessions,
  maxContainerName,
} from '../api/access/access-session.ts';
import { accessOfRequest } from '../api/access/kinds.ts';
import { apiVersionOf, type KubeObject, keyOf } from '../api/object.ts';
import { readObject } from '../api/schema/kind.ts';
import { formatTime } from '../kit/clock.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { StreamDecision } from './pod-call.ts';
import type { AuditedCall, SessionRecord } from './session-audit.ts';
import type { Session } from './sessions.ts';

export interface SessionView extends Projected {
  readonly namespace: string;
  /** The UUID of the session. */
  readonly name: string;
  readonly replica: string;
  readonly deleting: boolean;
  readonly pod: string;
  /** The name. */
  readonly request: string;
}

/** Index: the replica that holds the session. */
export const byReplica = 'replica';

export const openSessionStore = (cluster: Cluster): Store<SessionView> =>
  cluster.watch({
    resource: accessSessions,
    project: viewSession,
    indexes: { [byReplica]: ({ replica }: SessionView) => [replica] },
  }).store;

function viewSession(object: KubeObject): SessionView | undefined {
  const { uid, resourceVersion, namespace, name, deletionTimestamp } = object.metadata;
  const read = readObject(accessSessionKind, object);
  if (!uid || !resourceVersion || !namespace || !read.ok) return undefined;
  const { replica, pod, request } = read.value.spec;
  return {
    key: keyOf({ namespace, name }),
    uid,
    resourceVersion,
    namespace,
    name,
    replica,
    deleting: deletionTimestamp !== undefined,
    pod,
    request: request.name,
  };
}

/** `nowMs`: epoch ms. Omits a container name that is too long for Kubernetes. */
export function sessionObject(
  { caller, grant }: AuditedCall,
  { stream, options }: StreamDecision,
  { commandHash }: SessionRecord,
  { id }: Session,
  replica: string,
  nowMs: number,
): AccessSession {
  const { kind, name, uid } = grant.request;
  const { container = '', tty } = options;
  const isNamed = container !== '' && container.length <= maxContainerName;
  return {
    apiVersion: apiVersionOf(accessSessions),
    kind: accessSessions.kind,
    metadata: {
      name: id,
      namespace: grant.namespace,
      ownerReferences: [{ apiVersion: apiVersionOf(accessOfRequest(kind).request.resource), kind, name, uid }],
    },
    spec: {
      user: caller.username,
      grant: grant.name,
      request: { kind, name },
      pod: grant.pod,
      ...(isNamed ? { container } : {}),
      stream,
      tty,
      ...(commandHash === undefined ? {} : { commandHash }),
      recording: stream === 'portforward' ? 'Off' : (grant.recording?.mode ?? 'Off'),
      replica,
      startedAt: formatTime(nowMs),
    },
  };
}
