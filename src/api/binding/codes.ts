import type { CodeTable } from '../code-table.ts';

/** Denials by the admission policy of binding. */
export const bindingCodes = {
  Bundled: {
    audience: 'operator',
    meaning: 'A bundle owns the binding, and would create it again without the objects of its kind.',
    remedy:
      'Run `kubectl delete sbb NAME --cascade=orphan`, which keeps the bindings of the bundle. Then delete the binding.',
  },
} as const satisfies CodeTable;
