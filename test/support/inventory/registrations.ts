import type { Registration } from '../../../src/inventory/registration.ts';
import { type JsonPointer, pointerOf } from '../../../src/kit/json-pointer.ts';

/** A registered component with the defaults of the API. */
export function registrationOf(name: string, rest: Partial<Registration> = {}): Registration {
  return {
    name,
    generation: 1,
    endpoint: { url: `https://${name}.example.org` },
    caBundle: undefined,
    modes: ['managed', 'byoc'],
    selects: () => true,
    reads: readsOf(name),
    writes: [pointerOf('status', 'outputs', name)],
    kubeconfig: 'none',
    remoteWatches: [],
    intervalMs: 3_600_000,
    timeoutMs: 5000,
    heartbeatTimeoutMs: 60_000,
    maxRunMs: 3_600_000,
    maxConcurrent: 32,
    retry: { baseMs: 1000, capMs: 300_000 },
    notReadyAlertAfterMs: 900_000,
    ...rest,
  };
}

/** The implied reads of a component plus `more`. */
export const readsOf = (name: string, ...more: readonly JsonPointer[]): readonly JsonPointer[] => [
  pointerOf('spec', 'components', name, 'config'),
  pointerOf('spec', 'components', name, 'enabled'),
  '/spec/mode',
  ...more,
];
