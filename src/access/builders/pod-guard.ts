import { quote } from '../../kit/errors.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import type { Violation } from '../policy/policy.ts';

/**
 * Refuses an access pod that reaches further than the pods it is made after: privileged containers, added capabilities, host
 * namespaces, ports and paths, another ServiceAccount, a node of choice. It looks at the result, not at the patch that led there.
 * `source` is the workload's own pod spec; undefined for a template that writes its pod out, which then may have none of these.
 */
export function checkPodReach(podSpec: JsonObject, source: unknown): Violation | undefined {
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) {
    if (isSet(podSpec[field]) && !isSet(own(source, field))) return refuse(`spec.${field}`, 'is set');
  }
  if (isSet(podSpec['nodeName']) && podSpec['nodeName'] !== own(source, 'nodeName')) {
    return refuse('spec.nodeName', 'picks a node past the scheduler; use nodeSelector');
  }
  const account = serviceAccountOf(podSpec);
  if (account !== serviceAccountOf(source)) {
    return refuse(
      'spec.serviceAccountName',
      `is ${shown(account)}, not ${shown(serviceAccountOf(source))} as in the source`,
    );
  }
  return (
    checkHostPaths(podSpec, source) ??
    checkHostProcess(podSpec, source, 'spec.securityContext') ??
    checkContainers(podSpec, source)
  );
}

function checkHostPaths(podSpec: JsonObject, source: unknown): Violation | undefined {
  const known = new Set(hostPathsOf(source).map(({ path }) => path));
  const added = hostPathsOf(podSpec).find(({ path }) => !known.has(path));
  return added && refuse(`spec.volumes[${added.index}].hostPath`, `mounts ${shown(added.path)} of the node`);
}

function hostPathsOf(podSpec: unknown): { index: number; path: unknown }[] {
  return listOf(podSpec, 'volumes').flatMap((volume, index) => {
    const hostPath = own(volume, 'hostPath');
    return hostPath === undefined || hostPath === null ? [] : [{ index, path: own(hostPath, 'path') }];
  });
}

function checkContainers(podSpec: JsonObject, source: unknown): Violation | undefined {
  for (const list of ['initContainers', 'containers']) {
    const originals = listOf(source, list);
    for (const [index, container] of listOf(podSpec, list).entries()) {
      const name = own(container, 'name');
      const original = originals.find((candidate) => own(candidate, 'name') === name);
      const violation = checkContainer(container, original, `spec.${list}[${index}]`);
      if (violation) return violation;
    }
  }
  return undefined;
}

function checkContainer(container: unknown, original: unknown, where: string): Violation | undefined {
  const [context, before] = [own(container, 'securityContext'), own(original, 'securityContext')];
  if (isSet(own(context, 'privileged')) && !isSet(own(before, 'privileged'))) {
    return refuse(`${where}.securityContext.privileged`, 'is set');
  }
  const had = listOf(own(before, 'capabilities'), 'add');
  const added = listOf(own(context, 'capabilities'), 'add').find((capability) => !had.includes(capability));
  if (added !== undefined) return refuse(`${where}.securityContext.capabilities.add`, `adds ${shown(added)}`);
  const hostPorts = hostPortsOf(original);
  const port = hostPortsOf(container).find((candidate) => !hostPorts.includes(candidate));
  if (port !== undefined) return refuse(`${where}.ports`, `takes port ${shown(port)} of the node`);
  return checkHostProcess(container, original, `${where}.securityContext`);
}

/** The privileged of Windows. */
function checkHostProcess(holder: unknown, original: unknown, where: string): Violation | undefined {
  const hostProcessOf = (value: unknown): unknown =>
    own(own(own(value, 'securityContext'), 'windowsOptions'), 'hostProcess');
  if (!isSet(hostProcessOf(holder)) || isSet(hostProcessOf(original))) return undefined;
  return refuse(`${where}.windowsOptions.hostProcess`, 'is set');
}

const hostPortsOf = (container: unknown): unknown[] =>
  listOf(container, 'ports')
    .map((port) => own(port, 'hostPort'))
    .filter(isSet);

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

/** Neither absent nor the zero value. */
const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== false && value !== '' && value !== 0;

const shown = (value: unknown): string =>
  typeof value === 'string' ? quote(value) : isRecord(value) ? 'an object' : String(value);

function refuse(field: string, why: string): Violation {
  return {
    code: 'PodReachesTooFar',
    message:
      `${field} of the access pod ${why}; an access pod may not reach further than the pods of its workload ` +
      '(a podSpec: than an ordinary pod with the default ServiceAccount)',
    field,
    status: 403,
  };
}
