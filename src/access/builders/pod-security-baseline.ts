import { quote } from '../../kit/errors.ts';
import { isRecord, type JsonObject, listIn, own } from '../../kit/json-value.ts';
import type { Violation } from '../policy/policy.ts';

/**
 * Checks the final pod. Returns `PodReachesTooFar` for everything that the baseline level of the Pod Security Standards forbids, for a
 * ServiceAccount other than `account`, and for a `nodeName` other than the workload's. `workloadPodSpec` is undefined if the pod comes from
 * podSpec. Does not check ephemeral containers, which the builder removes.
 */
export function checkPodReach(
  { metadata, spec }: PodParts,
  workloadPodSpec: unknown,
  account: unknown,
): Violation | undefined {
  const excess = checkPod(spec, workloadPodSpec, account) ?? checkPodContext(metadata, spec) ?? checkContainers(spec);
  return excess && refuse(excess.field, excess.why);
}

/** A forbidden field, and a clause that describes the violation. */
interface Excess {
  readonly field: string;
  readonly why: string;
}

interface PodParts {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
}

function checkPod(spec: JsonObject, workloadPodSpec: unknown, expectedAccount: unknown): Excess | undefined {
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) {
    if (isSet(spec[field])) return { field: `spec.${field}`, why: 'is set' };
  }
  // The nodeName of the workload is harmless, because the builder removes it.
  if (isSet(spec['nodeName']) && spec['nodeName'] !== own(workloadPodSpec, 'nodeName')) {
    return { field: 'spec.nodeName', why: 'bypasses the scheduler (nodeSelector does not)' };
  }
  const account = serviceAccountOf(spec);
  if (account !== expectedAccount) {
    return { field: 'spec.serviceAccountName', why: `is ${shown(account)}, not ${shown(expectedAccount)}` };
  }
  const hostPath = listIn(spec, 'volumes').findIndex((volume) => isPresent(own(volume, 'hostPath')));
  return hostPath < 0 ? undefined : { field: `spec.volumes[${hostPath}].hostPath`, why: 'mounts a path of the node' };
}

function checkContainers(spec: JsonObject): Excess | undefined {
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of listIn(spec, list).entries()) {
      const where = `spec.${list}[${index}]`;
      const port = listIn(container, 'ports')
        .map((containerPort) => own(containerPort, 'hostPort'))
        .find(isSet);
      if (port !== undefined) return { field: `${where}.ports`, why: `takes port ${shown(port)} of the node` };
      const found =
        checkContainerContext(own(container, 'securityContext'), `${where}.securityContext`) ??
        checkHandlers(container, where);
      if (found) return found;
    }
  }
  return undefined;
}

/** Denies a `host` in probes and hooks: the kubelet runs them from the node, and would connect to any address for the pod. */
function checkHandlers(container: unknown, where: string): Excess | undefined {
  const lifecycle = own(container, 'lifecycle');
  const handlers = [
    ...['livenessProbe', 'readinessProbe', 'startupProbe'].map((field) => [field, own(container, field)] as const),
    ...['postStart', 'preStop'].map((field) => [`lifecycle.${field}`, own(lifecycle, field)] as const),
  ];
  for (const [field, handler] of handlers) {
    for (const action of ['httpGet', 'tcpSocket']) {
      const host = own(own(handler, action), 'host');
      if (isSet(host))
        return { field: `${where}.${field}.${action}.host`, why: `is ${shown(host)}, not the pod itself` };
    }
  }
  return undefined;
}

/** The ServiceAccount of a pod spec: `serviceAccountName`, else the deprecated `serviceAccount`, else `default`, as in the API server. */
export function serviceAccountOf(podSpec: unknown): unknown {
  const name = own(podSpec, 'serviceAccountName');
  if (isSet(name)) return name;
  const alias = own(podSpec, 'serviceAccount');
  return isSet(alias) ? alias : 'default';
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

/** Neither absent nor the zero value. */
const isSet = (value: unknown): boolean => isPresent(value) && value !== false && value !== '' && value !== 0;

/** The value for a message. */
const shown = (value: unknown): string =>
  typeof value === 'string' ? quote(value) : isRecord(value) ? 'an object' : String(value);

function refuse(field: string, why: string): Violation {
  return {
    code: 'PodReachesTooFar',
    message:
      `${field} of the access pod ${why}; remove it, or ask an administrator with the verb ` +
      'allow-privileged on the template to set spec.allowPrivilegedPod',
    field,
    status: 403,
  };
}

/** The default capabilities of container runtimes; adding one of them has no effect. */
const defaultCapabilities: ReadonlySet<unknown> = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

/** The sysctls that the baseline level allows, because they affect only the pod. */
const safeSysctls: ReadonlySet<unknown> = new Set([
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ping_group_range',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.tcp_wmem',
]);

/** The SELinux types that the baseline level allows. */
const containerTypes: ReadonlySet<unknown> = new Set([
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
]);

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/';

/** Checks the pod's securityContext, and the AppArmor annotations of older API servers. */
function checkPodContext(metadata: JsonObject, spec: JsonObject): Excess | undefined {
  const context = spec['securityContext'];
  const where = 'spec.securityContext';
  const sysctls = listIn(context, 'sysctls');
  const unsafe = sysctls.map((sysctl) => own(sysctl, 'name')).find((name) => !safeSysctls.has(name));
  if (unsafe !== undefined) return { field: `${where}.sysctls`, why: `sets ${shown(unsafe)}, which is not safe` };
  const annotations = isRecord(metadata['annotations']) ? metadata['annotations'] : {};
  for (const [key, value] of Object.entries(annotations)) {
    if (key.startsWith(appArmorPrefix) && value === 'unconfined') {
      return { field: 'metadata.annotations', why: `has ${quote(key)}: "unconfined"` };
    }
  }
  return checkConfinement(context, where);
}

function checkContainerContext(context: unknown, where: string): Excess | undefined {
  if (own(context, 'privileged')) return { field: `${where}.privileged`, why: 'is set' };
  const added = listIn(own(context, 'capabilities'), 'add').find((capability) => !defaultCapabilities.has(capability));
  if (added !== undefined) return { field: `${where}.capabilities.add`, why: `adds ${shown(added)}` };
  const procMount = own(context, 'procMount') ?? '';
  if (procMount !== '' && procMount !== 'Default') {
    return { field: `${where}.procMount`, why: `is ${shown(procMount)}, not "Default"` };
  }
  return checkConfinement(context, where);
}

/** Checks the fields that the securityContext of pods and that of containers share. */
function checkConfinement(context: unknown, where: string): Excess | undefined {
  // The Windows equivalent of privileged.
  if (own(own(context, 'windowsOptions'), 'hostProcess')) {
    return { field: `${where}.windowsOptions.hostProcess`, why: 'is set' };
  }
  for (const profile of ['seccompProfile', 'appArmorProfile']) {
    if (own(own(context, profile), 'type') === 'Unconfined') {
      return { field: `${where}.${profile}`, why: 'is "Unconfined"' };
    }
  }
  const seLinux = own(context, 'seLinuxOptions');
  if (!containerTypes.has(own(seLinux, 'type') ?? '') || own(seLinux, 'user') || own(seLinux, 'role')) {
    return { field: `${where}.seLinuxOptions`, why: 'has a user, a role, or a type other than that of a container' };
  }
  return undefined;
}
