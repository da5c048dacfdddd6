/** Labels of every object that the server and its chart create for themselves: keys, certificates, ServiceAccounts. */
export const ownLabels = { 'app.kubernetes.io/name': 'drawbridge' } as const;
