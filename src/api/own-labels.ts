/** On every object that this program and its chart create for themselves, in every namespace: keys, certificates, accounts. */
export const ownLabels = { 'app.kubernetes.io/name': 'drawbridge' } as const;
