import type { GrantSubject } from '../../api/access/grant.ts';
import type { WayIn } from '../../audit/record.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import type { Decision } from '../decision.ts';
import type { EnteredPod, PodEntry, PodGrant } from '../ports.ts';

/** One of the ways into a pod, read from its review. The command, ports and paths are left out: they may be secrets. */
export interface Entry {
  readonly reason: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string | undefined;
  readonly interactive: boolean;
  /** `alice ran a command in container app (an interactive session)`. */
  readonly note: string;
}

const words: Readonly<Record<WayIn, readonly [reason: string, verb: string]>> = {
  exec: ['PodExec', 'ran a command in'],
  attach: ['PodAttach', 'attached to'],
  portforward: ['PodPortForward', 'forwarded ports to'],
  proxy: ['PodProxy', 'sent an HTTP request to'],
  ephemeralcontainers: ['PodEphemeralContainer', 'added an ephemeral container to'],
};

export function readEntry({ subResource, namespace, name, user, object, oldObject }: Review): Entry {
  const [reason, verb] = words[subResource as WayIn];
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
export const entryEvent = ({ namespace, pod, reason, note }: Entry, type: PodEntry['type'] = 'Normal'): PodEntry => ({
  type,
  reason,
  namespace,
  pod,
  note,
});

/** What the audit line says of an entry. */
export const entryDetails = ({ pod, container, interactive }: Entry): NonNullable<Decision['details']> => ({
  pod,
  interactive,
  ...(container === undefined ? {} : { container }),
});

/** The grant that lets `user` into the pod. */
export function grantFor(pod: EnteredPod | undefined, user: UserInfo): PodGrant | undefined {
  return pod?.grants.find(({ subjects }) => subjects.some((subject) => isSubject(subject, user)));
}

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

function ephemeralContainers(pod: unknown): unknown[] {
  const list = own(own(pod, 'spec'), 'ephemeralContainers');
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
