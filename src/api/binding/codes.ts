import type { CodeTable } from '../code-table.ts';

/** Denials by the admission policy of the binding feature. */
export const bindingCodes = {
  Bundled: {
    audience: 'operator',
    meaning: 'An APIServiceBindingBundle owns the APIServiceBinding, and would create it again, without its objects.',
    remedy: 'Run `kubectl delete sbb NAME --cascade=orphan`, which keeps the bindings. Then delete the binding.',
  },
} as const satisfies CodeTable;
