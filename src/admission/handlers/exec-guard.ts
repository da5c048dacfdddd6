import type { GrantSubject } from '../../api/access/grant.ts';
import type { ConnectSubresource } from '../../audit/record.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { type Decision, type Denial, deny, type Handler } from '../decision.ts';
import type { AdmissionPorts, ConnectTarget, PodConnectEvent, PodGrant } from '../ports.ts';

/** A call that connects to a pod, without command, ports, and paths: they may contain secrets. */
interface PodConnect {
  /** Of the Event, such as `PodExec`. */
  readonly reason: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string | undefined;
  readonly interactive: boolean;
  /** Of the Event: `alice ran a command in container app (an interactive session)`. */
  readonly note: string;
}

const eventWords: Readonly<Record<ConnectSubresource, readonly [reason: string, verb: string]>> = {
  exec: ['PodExec', 'ran a command in'],
  attach: ['PodAttach', 'attached to'],
  portforward: ['PodPortForward', 'forwarded ports to'],
  proxy: ['PodProxy', 'sent an HTTP request to'],
  ephemeralcontainers: ['PodEphemeralContainer', 'added an ephemeral container to'],
};

function readConnect({ subResource, namespace, name, user, object, oldObject }: Review): PodConnect {
  const [reason, verb] = eventWords[subResource as ConnectSubresource];
  const subject = subResource === 'ephemeralcontainers' ? newContainer(object, oldObject) : object;
  const container = text(own(subject, subResource === 'ephemeralcontainers' ? 'name' : 'container'));
  const interactive = own(subject, 'stdin') === true && own(subject, 'tty') === true;
  const hasTerminal = subResource !== 'portforward' && subResource !== 'proxy';
  const terminal = hasTerminal ? ` (${interactive ? 'an interactive session' : 'no terminal'})` : '';
  return {
    reason,
    namespace,
    pod: subResource === 'proxy' ? proxiedPod(name) : name,
    container,
    interactive,
    note: `${user.username} ${verb} ${targetText(subResource, container)}${terminal}`,
  };
}

const connectEvent = (
  { namespace, pod, reason, note }: PodConnect,
  type: PodConnectEvent['type'] = 'Normal',
): PodConnectEvent => ({
  type,
  reason,
  namespace,
  pod,
  note,
});

const connectDetails = ({ pod, container, interactive }: PodConnect): NonNullable<Decision['details']> => ({
  pod,
  interactive,
  ...(container === undefined ? {} : { container }),
});

/** Even if the user may connect only through the gateway. */
function grantFor(pod: ConnectTarget | undefined, user: UserInfo): PodGrant | undefined {
  return pod?.grants.find((grant) => isGrantOf(grant, user));
}

const isGrantOf = ({ subjects }: PodGrant, user: UserInfo): boolean =>
  subjects.some((subject) => isSubject(subject, user));

const permits = ({ rules }: PodGrant, subresource: string): boolean =>
  rules.some(({ resources }) => resources.includes(`pods/${subresource}`));

const groupsOf = (grant: PodGrant | undefined): string[] =>
  (grant?.subjects ?? []).filter(({ kind }) => kind === 'Group').map(({ name }) => name);

const isSubject = ({ kind, name }: GrantSubject, { username, groups }: UserInfo): boolean =>
  kind === 'User' ? name === username : groups.includes(name);

function targetText(subResource: string, container: string | undefined): string {
  if (subResource === 'ephemeralcontainers') return container === undefined ? 'the pod' : `the pod: ${container}`;
  if (container !== undefined) return `container ${container}`;
  return subResource === 'exec' || subResource === 'attach' ? 'the default container' : 'the pod';
}

/** The API server accepts `name`, `name:port`, and `scheme:name:port`. */
function proxiedPod(name: string): string {
  const [first = '', second = '', third] = name.split(':');
  return third === undefined ? first : second;
}

/** The last one added. Callers never change or remove such containers. */
function newContainer(object: unknown, oldObject: unknown): unknown {
  const before = new Set(ephemeralContainers(oldObject).map((container) => own(container, 'name')));
  return ephemeralContainers(object).findLast((container) => !before.has(own(container, 'name')));
}

const ephemeralContainers = (pod: unknown): readonly unknown[] =>
  listIn(own(pod, 'spec'), 'ephemeralContainers').filter(isRecord);

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Records who connects to which pod: an audit line, and an Event (not in a dry run). */
export function observePod(ports: Pick<AdmissionPorts, 'recordConnect' | 'cachedConnectTarget'>): Handler {
  return {
    decide(review) {
      const connect = readConnect(review);
      if (!review.dryRun) ports.recordConnect(connectEvent(connect));
      const pod = ports.cachedConnectTarget(connect.namespace, connect.pod);
      const grant = pod?.grants.find(
        (each) => isGrantOf(each, review.user) && !each.viaGateway && permits(each, review.subResource),
      );
      return {
        details: { ...connectDetails(connect), ...(grant ? { request: grant.request } : {}) },
        decidingGroups: groupsOf(grant),
        ...(pod ? { objectUid: pod.uid } : {}),
      };
    },
  };
}

type Ports = Pick<AdmissionPorts, 'connectTarget' | 'breakGlassGroup' | 'recordConnect'>;

/**
 * Only subjects of an open grant, and the break-glass group, connect to its access pod: RBAC on
 * pods does not suffice. For other pods, it does. `guardGateway` has the gateway's calls.
 */
export function guardAccessPod(ports: Ports): Handler {
  return {
    async decide(review, signal) {
      const connect = readConnect(review);
      const details = connectDetails(connect);
      const pod = await ports.connectTarget(connect.namespace, connect.pod, signal);
      if (!pod) {
        const message = `pod ${connect.pod} does not exist in namespace ${connect.namespace}; check the name`;
        return deny({ code: 'PodNotFound', message, status: 404 }, details);
      }
      const decision = decide(connect, review, pod, ports);
      return { ...decision, objectUid: pod.uid, details: { ...details, ...decision.details } };
    },
  };
}

const forwardedByGateway: readonly string[] = ['exec', 'attach', 'portforward'];

/** The gateway's token opens only pods with an open Gateway grant. The gateway decides for whom. */
export function guardGateway(ports: Pick<AdmissionPorts, 'gatewayTarget' | 'recordConnect'>): Handler {
  return {
    async decide(review, signal) {
      const connect = readConnect(review);
      const details = connectDetails(connect);
      if (!forwardedByGateway.includes(review.subResource)) return deny(gatewayStaysOut(review.subResource), details);
      const pod = await ports.gatewayTarget(connect.namespace, connect.pod, signal);
      const grants = pod?.grants ?? [];
      const grant = grants.find((each) => permits(each, review.subResource)) ?? grants[0];
      const objectUid = pod ? { objectUid: pod.uid } : {};
      if (!grant) return { ...deny(noGatewayGrant(connect), details), ...objectUid };
      if (!review.dryRun) ports.recordConnect(connectEvent(connect));
      return { ...objectUid, details: { ...details, request: grant.request } };
    },
  };
}

function decide(connect: PodConnect, { user, dryRun }: Review, pod: ConnectTarget, ports: Ports): Decision {
  const found = grantFor(pod, user);
  const grant = found?.viaGateway ? undefined : found;
  if (grant || !pod.isAccessPod) {
    if (!dryRun) ports.recordConnect(connectEvent(connect));
    return grant ? { details: { request: grant.request }, decidingGroups: groupsOf(grant) } : {};
  }
  const [other] = pod.grants;
  const details = other ? { request: other.request } : {};
  if (ports.breakGlassGroup !== undefined && user.groups.includes(ports.breakGlassGroup)) {
    if (!dryRun) ports.recordConnect({ ...connectEvent(connect, 'Warning'), reason: 'BreakGlass' });
    const message = 'a member of the break-glass group connected';
    const decidingGroups = [ports.breakGlassGroup];
    return { details: { ...details, code: 'BreakGlass', message }, decidingGroups, opensAccess: true };
  }
  if (found) return deny(useGateway(connect, found), details);
  return deny(other ? notYourPod(connect, other) : accessEnded(connect), details);
}

const useGateway = ({ namespace, pod }: PodConnect, { request }: PodGrant): Denial => ({
  code: 'UseGateway',
  message:
    `the grant of PodAccessRequest ${request} opens pod ${pod} only through the gateway; ` +
    `run kubectl drawbridge exec ${request} -n ${namespace}, or, for calls other than exec, ` +
    `kubectl drawbridge use ${request} -n ${namespace}`,
  status: 403,
});

const noGatewayGrant = ({ namespace, pod }: PodConnect): Denial => ({
  code: 'NoGatewayGrant',
  message:
    `no open grant lets users enter pod ${pod} in namespace ${namespace} through the gateway; the gateway enters only pods of such grants; ` +
    'create a request for a template with session.via Gateway',
  status: 403,
});

const gatewayStaysOut = (subResource: string): Denial => ({
  code: 'TokenMisused',
  message: `the gateway called pods/${subResource}; it may call only ${forwardedByGateway.join(', ')} of pods: use one of these`,
  status: 403,
});

const notYourPod = ({ pod }: PodConnect, { request, template }: PodGrant): Denial => ({
  code: 'NoGrant',
  message:
    `pod ${pod} belongs to PodAccessRequest ${request}; only its subjects may connect; ` +
    `create a request of your own: a PodAccessRequest with spec.templateName ${template}`,
  status: 403,
});

const accessEnded = ({ pod }: PodConnect): Denial => ({
  code: 'NoGrant',
  message: `no open request grants access to pod ${pod}; only subjects of an open request may connect; create a new request`,
  status: 403,
});
