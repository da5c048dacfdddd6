/** The gateway's aggregated API. */
export const gatewayGroup = 'gateway.drawbridge.dev';
export const gatewayVersion = 'v1alpha1';

/** Through which users reach the pod of a grant. Its name is that of its Role (`childNameOf`). */
export const grantProxies = 'grants/proxy';

/** With this APIService, the API server forwards calls to the gateway. */
export const gatewayApiService = `${gatewayVersion}.${gatewayGroup}`;

/** `namespace`: that of the server. */
export const gatewayUserOf = (namespace: string): string => `system:serviceaccount:${namespace}:drawbridge-gateway`;

/** `grant`: its name, which is also that of its Role. */
export const grantProxyPath = (namespace: string, grant: string): string =>
  `/apis/${gatewayGroup}/${gatewayVersion}/namespaces/${namespace}/grants/${grant}/proxy`;

/** The live view of an open session, or a recording. `session`: its UUID. */
export const sessionLogPath = (resource: 'sessions' | 'recordings', namespace: string, session: string): string =>
  `/apis/${gatewayGroup}/${gatewayVersion}/namespaces/${namespace}/${resource}/${session}/log`;
