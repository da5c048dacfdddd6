import type { GrantSubject } from '../../api/access/grant.ts';
import type { EntrySubresource } from '../../audit/record.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { type Decision, type Handler, type Refusal, refuse } from '../decision.ts';
import type { AdmissionPorts, EnteredPod, PodEntry, PodGrant } from '../ports.ts';

/** One of the ways into a pod, read from its review. The command, ports and paths are left out: they may be secrets. */
interface Entry {
  readonly reason: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string | undefined;
  readonly interactive: boolean;
  /** `alice ran a command in container app (an interactive session)`. */
  readonly note: string;
}

const words: Readonly<Record<EntrySubresource, readonly [reason: string, verb: string]>> = {
  exec: ['PodExec', 'ran a command in'],
  attach: ['PodAttach', 'attached to'],
  portforward: ['PodPortForward', 'forwarded ports to'],
  proxy: ['PodProxy', 'sent an HTTP request to'],
  ephemeralcontainers: ['PodEphemeralContainer', 'added an ephemeral container to'],
};

function readEntry({ subResource, namespace, name, user, object, oldObject }: Review): Entry {
  const [reason, verb] = words[subResource as EntrySubresource];
  const subject = subResource === 'ephemeralcontainers' ? newContainer(object, oldObject) : object;
  const container = text(own(subject, subResource === 'ephemeralcontainers' ? 'name' : 'container'));
  const interactive = own(subject, 'stdin') === true && own(subject, 'tty') === true;
  return {
    reason,
    namespace,
    pod: subResource === 'proxy' ? proxiedPod(name) : name,
    container,
    interactive,
    note: `${user.username} ${verb} ${where(subResource, container)}`.concat(
      subResource === 'portforward' || subResource === 'proxy'
        ? ''
        : ` (${interactive ? 'an interactive session' : 'no terminal'})`,
    ),
  };
}

/** The Event of an entry. */
const entryEvent = ({ namespace, pod, reason, note }: Entry, type: PodEntry['type'] = 'Normal'): PodEntry => ({
  type,
  reason,
  namespace,
  pod,
  note,
});

/** What the audit line says of an entry. */
const entryDetails = ({ pod, container, interactive }: Entry): NonNullable<Decision['details']> => ({
  pod,
  interactive,
  ...(container === undefined ? {} : { container }),
});

/** The grant that lets `user` into the pod. */
function grantFor(pod: EnteredPod | undefined, user: UserInfo): PodGrant | undefined {
  return pod?.grants.find(({ subjects }) => subjects.some((subject) => isSubject(subject, user)));
}

const groupsOf = (grant: PodGrant | undefined): string[] =>
  (grant?.subjects ?? []).filter(({ kind }) => kind === 'Group').map(({ name }) => name);

const isSubject = ({ kind, name }: GrantSubject, { username, groups }: UserInfo): boolean =>
  kind === 'User' ? name === username : groups.includes(name);

function where(subResource: string, container: string | undefined): string {
  if (subResource === 'ephemeralcontainers') return container === undefined ? 'the pod' : `the pod: ${container}`;
  if (container !== undefined) return `container ${container}`;
  return subResource === 'exec' || subResource === 'attach' ? 'the default container' : 'the pod';
}

/** The apiserver takes `name`, `name:port` and `scheme:name:port`. */
function proxiedPod(name: string): string {
  const [first = '', second = '', third] = name.split(':');
  return third === undefined ? first : second;
}

/** The last one that was not there before; they can be added, but never changed or taken away. */
function newContainer(object: unknown, oldObject: unknown): unknown {
  const before = new Set(ephemeralContainers(oldObject).map((container) => own(container, 'name')));
  return ephemeralContainers(object).findLast((container) => !before.has(own(container, 'name')));
}

const ephemeralContainers = (pod: unknown): readonly unknown[] =>
  listIn(own(pod, 'spec'), 'ephemeralContainers').filter(isRecord);

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Watches who enters which pod: an Event on the pod and an audit line. It never refuses. */
export function observePod(ports: Pick<AdmissionPorts, 'podEntered' | 'knownPod'>): Handler {
  return {
    decide(review) {
      const entry = readEntry(review);
      if (!review.dryRun) ports.podEntered(entryEvent(entry));
      const pod = ports.knownPod(entry.namespace, entry.pod);
      const grant = grantFor(pod, review.user);
      return {
        details: { ...entryDetails(entry), ...(grant ? { request: grant.request } : {}) },
        decidingGroups: groupsOf(grant),
        ...(pod ? { objectUid: pod.uid } : {}),
      };
    },
  };
}

type Ports = Pick<AdmissionPorts, 'enteredPod' | 'breakGlassGroup' | 'podEntered'>;

/**
 * Guards the pods that we made: whoever else has rights on pods of the namespace has no business in them. It is told only of pods
 * with a name like ours; the pods of others among them are open to whom they were open before.
 */
export function guardAccessPod(ports: Ports): Handler {
  return {
    async decide(review, signal) {
      const entry = readEntry(review);
      const details = entryDetails(entry);
      const pod = await ports.enteredPod(entry.namespace, entry.pod, signal);
      if (!pod) {
        const message = `there is no pod ${entry.pod} in namespace ${entry.namespace}`;
        return refuse({ code: 'PodNotFound', message, status: 404 }, details);
      }
      const decision = decide(entry, review, pod, ports);
      return { ...decision, objectUid: pod.uid, details: { ...details, ...decision.details } };
    },
  };
}

function decide(entry: Entry, { user, dryRun }: Review, pod: EnteredPod, ports: Ports): Decision {
  const grant = grantFor(pod, user);
  if (grant || !pod.ours) {
    if (!dryRun) ports.podEntered(entryEvent(entry));
    return grant ? { details: { request: grant.request }, decidingGroups: groupsOf(grant) } : {};
  }
  const request = pod.grants[0]?.request;
  const details = request === undefined ? {} : { request };
  if (ports.breakGlassGroup !== undefined && user.groups.includes(ports.breakGlassGroup)) {
    if (!dryRun) ports.podEntered({ ...entryEvent(entry, 'Warning'), reason: 'BreakGlass' });
    const message = 'entered by the break-glass group';
    const decidingGroups = [ports.breakGlassGroup];
    return { details: { ...details, code: 'BreakGlass', message }, decidingGroups, opensAccess: true };
  }
  return refuse(request === undefined ? ended(entry) : opened(entry, request), details);
}

const opened = ({ pod }: Entry, request: string): Refusal => ({
  code: 'NotYourPod',
  message: `pod ${pod} was opened for those whom PodAccessRequest ${request} lets in, and for nobody else; ask for one of your own`,
  status: 403,
});

const ended = ({ pod }: Entry): Refusal => ({
  code: 'AccessEnded',
  message: `no request gives access to pod ${pod} any more, and it is about to be deleted; make a new request`,
  status: 403,
});
