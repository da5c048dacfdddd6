import { quote } from '../../kit/errors.ts';
import { isRecord, type JsonObject, listIn, own } from '../../kit/json-value.ts';
import { inAnyPosition, type Violation } from '../policy/policy.ts';

/**
 * `PodReachesTooFar`: forbidden by the baseline level of the Pod Security Standards, a
 * ServiceAccount other than `account`, or a `nodeName` other than the workload's. A pod from
 * podSpec has no `workloadPodSpec`.
 */
export function podReachViolations(
  { metadata, spec }: PodParts,
  workloadPodSpec: unknown,
  account: unknown,
): Violation[] {
  const found = [
    ...checkPod(spec, workloadPodSpec, account),
    ...checkPodContext(metadata, spec),
    ...checkContainers(spec),
  ];
  const remove = workloadPodSpec === undefined ? 'remove it' : 'remove it in patchSpecOperations';
  return found.map(({ field, why }) => refuse(field, why, remove));
}

interface Excess {
  readonly field: string;
  readonly why: string;
}

interface PodParts {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
}

function* checkPod(spec: JsonObject, workloadPodSpec: unknown, expectedAccount: unknown): Generator<Excess> {
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) {
    if (isSet(spec[field])) yield { field: `spec.${field}`, why: 'is set' };
  }
  // The nodeName of the workload is harmless, because the builder removes it.
  if (isSet(spec['nodeName']) && spec['nodeName'] !== own(workloadPodSpec, 'nodeName')) {
    yield { field: 'spec.nodeName', why: 'bypasses the scheduler (nodeSelector does not)' };
  }
  const account = serviceAccountOf(spec);
  if (account !== expectedAccount) {
    yield { field: 'spec.serviceAccountName', why: `is ${shown(account)}, not ${shown(expectedAccount)}` };
  }
  for (const [index, volume] of listIn(spec, 'volumes').entries()) {
    if (isPresent(own(volume, 'hostPath')))
      yield { field: `spec.volumes[${index}].hostPath`, why: 'mounts a path of the node' };
  }
}

function* checkContainers(spec: JsonObject): Generator<Excess> {
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of listIn(spec, list).entries()) {
      const where = `spec.${list}[${index}]`;
      for (const containerPort of listIn(container, 'ports')) {
        const port = own(containerPort, 'hostPort');
        if (isSet(port)) yield { field: `${where}.ports`, why: `takes port ${shown(port)} of the node` };
      }
      yield* checkContainerContext(own(container, 'securityContext'), `${where}.securityContext`);
      yield* checkHandlers(container, where);
    }
  }
}

/** The kubelet runs probes and hooks from the node, and would connect to any `host` for the pod. */
function* checkHandlers(container: unknown, where: string): Generator<Excess> {
  const lifecycle = own(container, 'lifecycle');
  const handlers = [
    ...['livenessProbe', 'readinessProbe', 'startupProbe'].map((field) => [field, own(container, field)] as const),
    ...['postStart', 'preStop'].map((field) => [`lifecycle.${field}`, own(lifecycle, field)] as const),
  ];
  for (const [field, handler] of handlers) {
    for (const action of ['httpGet', 'tcpSocket']) {
      const host = own(own(handler, action), 'host');
      if (isSet(host))
        yield { field: `${where}.${field}.${action}.host`, why: `is ${shown(host)}, not the pod itself` };
    }
  }
}

/** `serviceAccountName`, else the deprecated `serviceAccount`, else `default`. */
export function serviceAccountOf(podSpec: unknown): unknown {
  const name = own(podSpec, 'serviceAccountName');
  if (isSet(name)) return name;
  const alias = own(podSpec, 'serviceAccount');
  return isSet(alias) ? alias : 'default';
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

/** Neither absent nor the zero value. */
const isSet = (value: unknown): boolean => isPresent(value) && value !== false && value !== '' && value !== 0;

const shown = (value: unknown): string =>
  typeof value === 'string' ? quote(value) : isRecord(value) ? 'an object' : String(value);

/** The baseline level does not limit these, so the Namespace needs no label for them. */
const outsideBaseline: ReadonlySet<string> = new Set(['spec.nodeName', 'spec.serviceAccountName']);

function refuse(field: string, why: string, remove: string): Violation {
  const label = outsideBaseline.has(field)
    ? ''
    : '; the Namespace then needs the label access.drawbridge.dev/allow-privileged=true';
  return {
    code: 'PodReachesTooFar',
    message:
      `${field} of the access pod ${why}; ${remove}, or ask an administrator with the verb ` +
      `allow-privileged on the template to set spec.allowPrivilegedPod${label}`,
    field,
    status: 403,
    key: `${inAnyPosition(field)} ${why}`,
  };
}

/** What the baseline level allows: the defaults of container runtimes. */
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

/** What the baseline level allows, because it affects only the pod. */
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

/** What the baseline level allows. */
const containerTypes: ReadonlySet<unknown> = new Set([
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
]);

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/';

/** Older API servers have AppArmor annotations. */
function* checkPodContext(metadata: JsonObject, spec: JsonObject): Generator<Excess> {
  const context = spec['securityContext'];
  const where = 'spec.securityContext';
  for (const sysctl of listIn(context, 'sysctls')) {
    const name = own(sysctl, 'name');
    if (name !== undefined && !safeSysctls.has(name))
      yield { field: `${where}.sysctls`, why: `sets ${shown(name)}, which is not safe` };
  }
  const annotations = isRecord(metadata['annotations']) ? metadata['annotations'] : {};
  for (const [key, value] of Object.entries(annotations)) {
    if (key.startsWith(appArmorPrefix) && value === 'unconfined') {
      yield { field: 'metadata.annotations', why: `has ${quote(key)}: "unconfined"` };
    }
  }
  yield* checkConfinement(context, where);
}

function* checkContainerContext(context: unknown, where: string): Generator<Excess> {
  if (own(context, 'privileged')) yield { field: `${where}.privileged`, why: 'is set' };
  for (const added of listIn(own(context, 'capabilities'), 'add')) {
    if (!defaultCapabilities.has(added)) yield { field: `${where}.capabilities.add`, why: `adds ${shown(added)}` };
  }
  const procMount = own(context, 'procMount') ?? '';
  if (procMount !== '' && procMount !== 'Default') {
    yield { field: `${where}.procMount`, why: `is ${shown(procMount)}, not "Default"` };
  }
  yield* checkConfinement(context, where);
}

/** The fields that pods and containers share. */
function* checkConfinement(context: unknown, where: string): Generator<Excess> {
  // The Windows equivalent of privileged.
  if (own(own(context, 'windowsOptions'), 'hostProcess')) {
    yield { field: `${where}.windowsOptions.hostProcess`, why: 'is set' };
  }
  for (const profile of ['seccompProfile', 'appArmorProfile']) {
    if (own(own(context, profile), 'type') === 'Unconfined') {
      yield { field: `${where}.${profile}`, why: 'is "Unconfined"' };
    }
  }
  const seLinux = own(context, 'seLinuxOptions');
  if (!containerTypes.has(own(seLinux, 'type') ?? '') || own(seLinux, 'user') || own(seLinux, 'role')) {
    yield { field: `${where}.seLinuxOptions`, why: 'has a user, a role, or a type other than that of a container' };
  }
}
