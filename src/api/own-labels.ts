/** Labels of the Secrets and ConfigMaps that the server creates for itself. The objects of its chart have them, too. A Lease has none. */
export const ownLabels = { 'app.kubernetes.io/name': 'drawbridge' } as const;
