import { type ExecAccessTemplateSpec, execAccessRequests, execAccessTemplates } from '../api/access/exec-access.ts';
import type { AccessKind } from './access-kind.ts';
import { childNameOf } from './builders/child-names.ts';
import { chooseExecPod, planExecAccess } from './builders/exec-access-builder.ts';
import type { Planned } from './builders/plan.ts';
import { confinedTo, rulesOf } from './policy/granted-rules.ts';
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
    const planFor = (pod: { readonly name: string; readonly uid: string }): Planned =>
      planExecAccess({
        request,
        pod,
        subjects,
        rules: pinned?.rules ?? confinedTo(pod.name, rulesOf(spec.accessConfig)),
      });
    if (pinned?.uid) return planFor({ name: pinned.name, uid: pinned.uid });
    const chosen = chooseExecPod({
      requestUid: request.uid,
      targetPod: 'targetPod' in request.spec ? request.spec.targetPod : undefined,
      selector: stores.workload(targetKey(spec.controllerTargetRef, namespace))?.selector,
      pods: stores.pods.byIndex(byNamespace, request.namespace),
    });
    return 'violation' in chosen ? { refusal: chosen.violation } : planFor(chosen.pod);
  },
});
