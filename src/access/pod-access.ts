import { type PodAccessTemplateSpec, podAccessRequests, podAccessTemplates } from '../api/access/pod-access.ts';
import type { AccessKind } from './access-kind.ts';
import { childNameOf } from './builders/child-names.ts';
import { planPodAccess } from './builders/pod-access-builder.ts';
import type { AccessStores } from './stores/access-stores.ts';
import { targetKey } from './template/target.ts';

/** Access to a pod of one's own, made after a workload or written out in the template. */
export const podAccess = (stores: AccessStores): AccessKind<PodAccessTemplateSpec> => ({
  requestKind: 'PodAccessRequest',
  templateKind: 'PodAccessTemplate',
  requestResource: podAccessRequests,
  templateResource: podAccessTemplates,
  createsPod: true,
  requests: stores.podRequests,
  templates: stores.podTemplates,
  childName: childNameOf,
  plan(request, { spec, namespace }, { subjects, durationMs, pinned }) {
    const workload = spec.controllerTargetRef && stores.workload(targetKey(spec.controllerTargetRef, namespace));
    const selectors = stores.selectorsIn(namespace);
    return planPodAccess({
      request,
      templateSpec: spec,
      workload,
      selectors,
      subjects,
      durationMs,
      rules: pinned?.rules,
    });
  },
});
