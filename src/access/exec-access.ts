import { execAccessRequests } from '../api/access/exec-access-request.ts';
import { type ExecAccessTemplateSpec, execAccessTemplates } from '../api/access/exec-access-template.ts';
import type { AccessKind } from './access-kind.ts';
import { childNameOf } from './builders/child-names.ts';
import { chooseExecPod, planExecAccess } from './builders/exec-access-builder.ts';
import { type AccessStores, byNamespace } from './stores/access-stores.ts';
import { targetKey } from './template/target.ts';

/** Access to a running pod of a workload; the pod is chosen once and pinned by uid. */
export const execAccess = (stores: AccessStores): AccessKind<ExecAccessTemplateSpec> => ({
  requestKind: 'ExecAccessRequest',
  templateKind: 'ExecAccessTemplate',
  requestResource: execAccessRequests,
  templateResource: execAccessTemplates,
  createsPod: false,
  requests: stores.execRequests,
  templates: stores.execTemplates,
  childName: childNameOf,
  plan(request, { spec, namespace }, { subjects, pinned }) {
    if (pinned?.uid) return planExecAccess({ request, pod: { name: pinned.name, uid: pinned.uid }, subjects });
    const chosen = chooseExecPod({
      requestUid: request.uid,
      targetPod: 'targetPod' in request.spec ? request.spec.targetPod : undefined,
      selector: stores.workload(targetKey(spec.controllerTargetRef, namespace))?.selector,
      pods: stores.pods.byIndex(byNamespace, request.namespace),
    });
    return 'violation' in chosen
      ? { refusal: chosen.violation }
      : planExecAccess({ request, pod: chosen.pod, subjects });
  },
});
