import { quote } from '../../kit/errors.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import type { Violation } from '../policy/policy.ts';
import { checkContainerContext, checkPodContext, type TooFar } from './security-context.ts';

/**
 * Refuses an access pod that reaches beyond itself: what the baseline level of the Pod Security Standards forbids (privileged
 * containers, added capabilities, namespaces, paths and ports of the node), another ServiceAccount than the workload's, a node of
 * choice. It looks at the result, whether workload, podSpec or patch led there. `source` is the workload's own pod spec; undefined
 * for a template that writes its pod out, which has the default ServiceAccount then.
 */
export function checkPodReach({ metadata, spec }: PodParts, source: unknown): Violation | undefined {
  const found = checkPod(spec, source) ?? checkPodContext(metadata, spec) ?? checkContainers(spec);
  return found && refuse(found.field, found.why);
}

interface PodParts {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
}

function checkPod(spec: JsonObject, source: unknown): TooFar | undefined {
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) {
    if (isSet(spec[field])) return { field: `spec.${field}`, why: 'is set' };
  }
  // The workload's own is not copied.
  if (isSet(spec['nodeName']) && spec['nodeName'] !== own(source, 'nodeName')) {
    return { field: 'spec.nodeName', why: 'picks a node past the scheduler (nodeSelector does not)' };
  }
  const [account, expected] = [serviceAccountOf(spec), serviceAccountOf(source)];
  if (account !== expected) {
    return { field: 'spec.serviceAccountName', why: `is ${shown(account)}, not ${shown(expected)} as in the source` };
  }
  const hostPath = listOf(spec, 'volumes').findIndex((volume) => isPresent(own(volume, 'hostPath')));
  return hostPath < 0 ? undefined : { field: `spec.volumes[${hostPath}].hostPath`, why: 'mounts a path of the node' };
}

function checkContainers(spec: JsonObject): TooFar | undefined {
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of listOf(spec, list).entries()) {
      const where = `spec.${list}[${index}]`;
      const port = listOf(container, 'ports')
        .map((each) => own(each, 'hostPort'))
        .find(isSet);
      if (port !== undefined) return { field: `${where}.ports`, why: `takes port ${shown(port)} of the node` };
      const found = checkContainerContext(own(container, 'securityContext'), `${where}.securityContext`);
      if (found) return found;
    }
  }
  return undefined;
}

/** The deprecated `serviceAccount` counts where `serviceAccountName` is absent, as in the API server. */
function serviceAccountOf(podSpec: unknown): unknown {
  const name = own(podSpec, 'serviceAccountName');
  if (isSet(name)) return name;
  const alias = own(podSpec, 'serviceAccount');
  return isSet(alias) ? alias : 'default';
}

function listOf(object: unknown, field: string): unknown[] {
  const value = own(object, field);
  return Array.isArray(value) ? value : [];
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

/** Neither absent nor the zero value. */
const isSet = (value: unknown): boolean => isPresent(value) && value !== false && value !== '' && value !== 0;

const shown = (value: unknown): string =>
  typeof value === 'string' ? quote(value) : isRecord(value) ? 'an object' : String(value);

function refuse(field: string, why: string): Violation {
  return {
    code: 'PodReachesTooFar',
    message:
      `${field} of the access pod ${why}; take it out, or let an administrator, who has the right ` +
      'allow-privileged on the template, set spec.allowPrivilegedPod',
    field,
    status: 403,
  };
}
