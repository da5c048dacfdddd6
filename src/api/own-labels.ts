/**
 * Labels of the Secrets and ConfigMaps that the server creates for its own use, and of the objects of the chart. The Leases of the server
 * do not have them.
 */
export const ownLabels = { 'app.kubernetes.io/name': 'drawbridge' } as const;
