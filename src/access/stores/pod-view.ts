import { type KubeObject, keyOf } from '../../api/object.ts';
import { stopGraceS } from '../../grants/applier.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { madeFor } from './child-view.ts';
import type { PodView } from './views.ts';

/** A manifest inside an annotation: most of a Pod's memory, and nobody's access command names it. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

export function viewPod(object: KubeObject): PodView | undefined {
  const { uid, resourceVersion, namespace, name, labels = {}, annotations = {} } = object.metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  if (!uid || !resourceVersion || !namespace) return undefined;
  const { [lastApplied]: _, ...kept } = annotations;
  const request = madeFor(object);
  const ready = conditionStatus(object.status, 'Ready') === 'True';
  return {
    key: keyOf({ namespace, name }),
    uid,
    resourceVersion,
    namespace,
    name,
    labels,
    annotations: kept,
    phase: text(own(object.status, 'phase')),
    ready,
    deleting: deletionTimestamp !== undefined,
    leaving: deletionTimestamp !== undefined && deletionGracePeriodSeconds <= stopGraceS,
    ...(request ? { madeFor: request } : {}),
    waiting: ready ? '' : waitingReason(object.status),
  };
}

/** `container shell: ImagePullBackOff: …`, or as near to it as the status tells; without counts and times, which would change for ever. */
function waitingReason(status: unknown): string {
  // The kubelet goes back and forth between ErrImagePull and ImagePullBackOff; each change would be a status write.
  for (const container of [...listOf(status, 'initContainerStatuses'), ...listOf(status, 'containerStatuses')]) {
    const state = own(container, 'state');
    const stuck = own(state, 'waiting') ?? own(state, 'terminated');
    if (stuck === undefined || own(stuck, 'reason') === 'Completed') continue;
    return `container ${text(own(container, 'name'))}: ${(text(own(stuck, 'reason')) || 'not running').replace(/^ErrImagePull$/, 'ImagePullBackOff')}`;
  }
  const phase = text(own(status, 'phase'));
  if (phase === 'Failed' || phase === 'Succeeded') {
    return `the Pod has ended (${text(own(status, 'reason')) || phase}); delete this request and make another`;
  }
  const unscheduled = listOf(status, 'conditions').find(
    (condition) => own(condition, 'type') === 'PodScheduled' && own(condition, 'status') === 'False',
  );
  return unscheduled ? `not scheduled: ${text(own(unscheduled, 'message'))}` : `the Pod is ${phase || 'Pending'}`;
}

function conditionStatus(status: unknown, type: string): unknown {
  return own(
    listOf(status, 'conditions').find((condition) => own(condition, 'type') === type),
    'status',
  );
}

function listOf(object: unknown, field: string): unknown[] {
  const list = own(object, field);
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 512) : '');
