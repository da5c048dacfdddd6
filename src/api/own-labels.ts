/** On the server's own Secrets and ConfigMaps (not Leases), and the objects of the chart. */
export const ownLabels = { 'app.kubernetes.io/name': 'drawbridge' } as const;
