/** API group of the gateway's aggregated API. */
export const gatewayGroup = 'gateway.drawbridge.dev';
export const gatewayVersion = 'v1alpha1';

/** The subresource through which users reach the pod of a grant. The name of a grant is the name of its Role (`childNameOf`). */
export const grantProxies = 'grants/proxy';

/** Name of the APIService with which the API server forwards calls to the gateway. */
export const gatewayApiService = `${gatewayVersion}.${gatewayGroup}`;

/** The user name of the ServiceAccount of the gateway. `namespace`: the namespace of the server. */
export const gatewayUserOf = (namespace: string): string => `system:serviceaccount:${namespace}:drawbridge-gateway`;

/** The path below which the gateway serves a grant. `grant`: the name of the grant, which is also the name of its Role. */
export const grantProxyPath = (namespace: string, grant: string): string =>
  `/apis/${gatewayGroup}/${gatewayVersion}/namespaces/${namespace}/grants/${grant}/proxy`;

/** The path of the live view of an open session (`sessions`), or of a recording (`recordings`). `session`: the UUID of the session. */
export const sessionLogPath = (resource: 'sessions' | 'recordings', namespace: string, session: string): string =>
  `/apis/${gatewayGroup}/${gatewayVersion}/namespaces/${namespace}/${resource}/${session}/log`;
