import { gatewayGroup, gatewayVersion } from '../api/gateway/names.ts';

interface Document {
  readonly contentType: string;
  readonly body: unknown;
}

const json = 'application/json';
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const groupVersion = `${gatewayGroup}/${gatewayVersion}`;
const version = { groupVersion, version: gatewayVersion };
const group = { name: gatewayGroup, versions: [version], preferredVersion: version };
/** No verb `delete`, so that the namespace controller does not try to delete them. */
const served = [
  { resource: 'grants', singular: 'grant', kind: 'Grant', subresource: 'proxy', verbs: ['create', 'get'] },
  { resource: 'sessions', singular: 'session', kind: 'Session', subresource: 'log', verbs: ['get'] },
  { resource: 'recordings', singular: 'recording', kind: 'Recording', subresource: 'log', verbs: ['get'] },
];

/** Asks for all groups and resources in one document. */
const acceptsAggregated = (accept: string): boolean => accept.includes('as=APIGroupDiscoveryList');

/** Of the gateway's API. `accept`: the header Accept of the call. */
export function apiDocument(path: string, accept: string): Document | undefined {
  switch (path) {
    case '/apis':
      return acceptsAggregated(accept)
        ? { contentType: aggregated, body: groupList([groupDiscovery]) }
        : plain({ kind: 'APIGroupList', apiVersion: 'v1', groups: [group] });
    case `/apis/${gatewayGroup}`:
      return plain({ kind: 'APIGroup', apiVersion: 'v1', ...group });
    case `/apis/${groupVersion}`:
      return plain({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources });
    default:
      return undefined;
  }
}

/** Below `grants/NAME/proxy`: pods only. `accept`: the header Accept of the call. */
export function podDocument(path: string, accept: string): Document | undefined {
  switch (path) {
    case '':
      return plain({ paths: ['/api', '/api/v1', '/apis'] });
    case '/api':
      return acceptsAggregated(accept)
        ? { contentType: aggregated, body: groupList([coreDiscovery]) }
        : plain({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] });
    case '/api/v1':
      return plain({ kind: 'APIResourceList', groupVersion: 'v1', resources: podResources });
    case '/apis':
      return acceptsAggregated(accept)
        ? { contentType: aggregated, body: groupList([]) }
        : plain({ kind: 'APIGroupList', apiVersion: 'v1', groups: [] });
    default:
      return undefined;
  }
}

const plain = (body: unknown): Document => ({ contentType: json, body });

const groupList = (items: readonly unknown[]) => ({
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  metadata: {},
  items,
});

const resources = served.flatMap(({ resource, singular, kind, subresource, verbs }) => [
  { name: resource, singularName: singular, namespaced: true, kind, verbs: ['get'] },
  { name: `${resource}/${subresource}`, singularName: '', namespaced: true, kind, verbs },
]);

const groupDiscovery = {
  metadata: { name: gatewayGroup, creationTimestamp: null },
  versions: [
    {
      version: gatewayVersion,
      freshness: 'Current',
      resources: served.map(({ resource, singular, kind, subresource, verbs }) => {
        const responseKind = { group: gatewayGroup, version: gatewayVersion, kind };
        return {
          resource,
          responseKind,
          scope: 'Namespaced',
          singularResource: singular,
          verbs: ['get'],
          subresources: [{ subresource, responseKind, verbs }],
        };
      }),
    },
  ],
};

const podVerbs: Readonly<Record<string, readonly string[]>> = {
  attach: ['create', 'get'],
  exec: ['create', 'get'],
  log: ['get'],
  portforward: ['create', 'get'],
};

const podResources = [
  {
    name: 'pods',
    singularName: 'pod',
    namespaced: true,
    kind: 'Pod',
    verbs: ['get', 'list', 'watch'],
    shortNames: ['po'],
  },
  ...Object.entries(podVerbs).map(([name, verbs]) => ({
    name: `pods/${name}`,
    singularName: '',
    namespaced: true,
    kind: 'Pod',
    verbs,
  })),
];

const podKind = { group: '', version: 'v1', kind: 'Pod' };

const coreDiscovery = {
  metadata: { name: '', creationTimestamp: null },
  versions: [
    {
      version: 'v1',
      freshness: 'Current',
      resources: [
        {
          resource: 'pods',
          responseKind: podKind,
          scope: 'Namespaced',
          singularResource: 'pod',
          shortNames: ['po'],
          verbs: ['get', 'list', 'watch'],
          subresources: Object.entries(podVerbs).map(([subresource, verbs]) => ({
            subresource,
            responseKind: podKind,
            verbs,
          })),
        },
      ],
    },
  ],
};
