import type { planPodAccess } from '../../src/access/builders/pod-access.ts';
import type { ControllerTargetMutationConfig } from '../../src/api/access/mutation-config.ts';
import type { PodAccessTemplateSpec } from '../../src/api/access/pod-access.ts';

type Input = Parameters<typeof planPodAccess>[0];

/** The input of a plan for a copy of a workload with this Pod template and mutation, of any value, as if the schema accepted it. */
export function planInput(podTemplate: unknown, mutation: unknown, fields: Partial<PodAccessTemplateSpec> = {}) {
  const templateSpec = {
    accessConfig: {
      allowedGroups: ['devs'],
      defaultDuration: '1h',
      maxDuration: '24h',
      accessCommand: 'kubectl exec {{ .Metadata.Name }} -- sh',
      grantTo: 'Requester',
    },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
    controllerTargetMutationConfig: mutation as ControllerTargetMutationConfig,
    ...fields,
  } satisfies PodAccessTemplateSpec;
  const workload = {
    key: 'ns/web',
    uid: 'w',
    resourceVersion: '1',
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    namespace: 'ns',
    name: 'web',
    selector: undefined,
    podTemplate: podTemplate as Record<string, unknown>,
  };
  return {
    request: { namespace: 'ns', name: 'req', uid: '1a2b3c4d' },
    templateSpec,
    workload,
    pullSecrets: ['registry'],
    accessPods: 'confined',
    workloads: [workload],
    selectors: [],
    subjects: [{ kind: 'User', name: 'alice' }],
    durationMs: 60_000,
  } satisfies Input as Input;
}
