import { readExecAccessRequest } from '../../api/access/exec-access.ts';
import { readGrant } from '../../api/access/grant.ts';
import { readPodAccessRequest } from '../../api/access/pod-access.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import { own } from '../../kit/json-value.ts';
import type { RequestView } from './views.ts';

/**
 * The projection of both kinds of requests. One that is broken where the schema was bypassed still shows its grant, so that it ends
 * on time; undefined only when there is no metadata to act on.
 */
export function viewRequest(object: KubeObject): RequestView | undefined {
  const { uid, resourceVersion, namespace, name, creationTimestamp } = object.metadata;
  const createdAtMs = parseTime(creationTimestamp ?? '');
  if (!uid || !resourceVersion || !namespace || createdAtMs === undefined) return undefined;
  const read = readRequest(object);
  const grant = readGrant(object);
  return {
    key: keyOf({ namespace, name }),
    uid,
    resourceVersion,
    namespace,
    name,
    generation: object.metadata.generation ?? 0,
    createdAtMs,
    deleting: object.metadata.deletionTimestamp !== undefined,
    finalizers: object.metadata.finalizers ?? [],
    revoked: own(object.spec, 'revoked') === true,
    spec: read.ok ? read.value.spec : { templateName: '' },
    grant: grant.ok ? grant.value : undefined,
    children: (read.ok && read.value.status?.children) || [],
    conditions: (read.ok && read.value.status?.conditions) || [],
    ready: (read.ok && read.value.status?.ready) || false,
  };
}

function readRequest(
  object: KubeObject,
): ReturnType<typeof readPodAccessRequest> | ReturnType<typeof readExecAccessRequest> {
  return object.kind === 'ExecAccessRequest' ? readExecAccessRequest(object) : readPodAccessRequest(object);
}
