import type { CodeTable } from '../code-table.ts';

/** Denials by the admission policy of the binding feature. */
export const bindingCodes = {
  Bundled: {
    audience: 'operator',
    meaning:
      'An APIServiceBindingBundle owns the APIServiceBinding that the request deletes. The bundle would create the binding again, and all objects of the bound kinds would be lost.',
    remedy:
      'Run `kubectl delete sbb NAME --cascade=orphan`, which keeps the bindings of the bundle. Then delete the binding.',
  },
} as const satisfies CodeTable;
