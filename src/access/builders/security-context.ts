import { quote } from '../../kit/errors.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';

/** The field that goes too far, and a clause that says how. */
export interface TooFar {
  readonly field: string;
  readonly why: string;
}

/** What container runtimes give anyway; adding it again adds nothing. */
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

/** Those that stay within the pod. */
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

const containerTypes: ReadonlySet<unknown> = new Set([
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
]);

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/';

/** The pod's own securityContext, and the annotations that older API servers read as a part of it. */
export function checkPodContext(metadata: JsonObject, spec: JsonObject): TooFar | undefined {
  const context = spec['securityContext'];
  const where = 'spec.securityContext';
  const sysctls = own(context, 'sysctls');
  const unsafe = (Array.isArray(sysctls) ? sysctls : [])
    .map((sysctl) => own(sysctl, 'name'))
    .find((name) => !safeSysctls.has(name));
  if (unsafe !== undefined) return { field: `${where}.sysctls`, why: `sets ${shown(unsafe)}, which is not safe` };
  const annotations = isRecord(metadata['annotations']) ? metadata['annotations'] : {};
  for (const [key, value] of Object.entries(annotations)) {
    if (key.startsWith(appArmorPrefix) && value === 'unconfined') {
      return { field: 'metadata.annotations', why: `has ${quote(key)}: "unconfined"` };
    }
  }
  return checkConfinement(context, where);
}

export function checkContainerContext(context: unknown, where: string): TooFar | undefined {
  if (own(context, 'privileged')) return { field: `${where}.privileged`, why: 'is set' };
  const add = own(own(context, 'capabilities'), 'add');
  const added = (Array.isArray(add) ? add : []).find((capability) => !defaultCapabilities.has(capability));
  if (added !== undefined) return { field: `${where}.capabilities.add`, why: `adds ${shown(added)}` };
  const procMount = own(context, 'procMount') ?? '';
  if (procMount !== '' && procMount !== 'Default') {
    return { field: `${where}.procMount`, why: `is ${shown(procMount)}, not "Default"` };
  }
  return checkConfinement(context, where);
}

/** What both a pod and a container may have. */
function checkConfinement(context: unknown, where: string): TooFar | undefined {
  // The privileged of Windows.
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
    return { field: `${where}.seLinuxOptions`, why: 'is not that of a container' };
  }
  return undefined;
}

const shown = (value: unknown): string =>
  typeof value === 'string' ? quote(value) : isRecord(value) ? 'an object' : String(value);
