import type { ApiAnswer } from '../../sandbox/api-call.ts';
import type { ConnectSubresource } from '../../src/audit/record.ts';
import type { Person } from './person.ts';

type Who = Pick<Person, 'call'>;

/**
 * The calls by which clients enter a pod. The API server calls the webhooks before it contacts a kubelet or upgrades the connection, so any
 * answer except 403 or 500 means that the webhooks allowed the call.
 */
export const enter: Readonly<
  Record<ConnectSubresource, (who: Who, namespace: string, pod: string) => Promise<ApiAnswer>>
> = {
  exec: (who, namespace, pod) => who.call('POST', `${podUrl(namespace, pod)}/exec?command=true&stdout=true`),
  attach: (who, namespace, pod) => who.call('POST', `${podUrl(namespace, pod)}/attach?stdout=true`),
  portforward: (who, namespace, pod) => who.call('POST', `${podUrl(namespace, pod)}/portforward?ports=4711`),
  proxy: (who, namespace, pod) => who.call('GET', `${podUrl(namespace, pod)}:4711/proxy/hunter2`),
  ephemeralcontainers: (who, namespace, pod) =>
    who.call('PATCH', `${podUrl(namespace, pod)}/ephemeralcontainers`, {
      spec: { ephemeralContainers: [{ name: 'debugger', image: 'busybox:1.37', command: ['hunter2'] }] },
    }),
};

/** Both verbs that open an exec stream: old clients POST and upgrade to SPDY, newer ones GET a WebSocket. */
export const execs: Readonly<
  Record<string, (who: Who & Pick<Person, 'open'>, namespace: string, pod: string) => Promise<ApiAnswer>>
> = {
  'a POST': enter.exec,
  'a WebSocket GET': (who, namespace, pod) =>
    who.open(`${podUrl(namespace, pod)}/exec?command=echo&command=in&stdout=true&stderr=true`),
};

const podUrl = (namespace: string, pod: string): string => `/api/v1/namespaces/${namespace}/pods/${pod}`;

/** A rule for all of these calls. The ClusterRole `edit` lacks the last one. */
export const allWaysIn = {
  apiGroups: [''],
  resources: ['pods/exec', 'pods/attach', 'pods/portforward', 'pods/proxy', 'pods/ephemeralcontainers'],
  verbs: ['get', 'create', 'update', 'patch'],
};
