import { revokeFinalizer } from '../../src/api/access/names.ts';
import { formatTime } from '../../src/kit/clock.ts';
import type { Manifest } from './access-requests.ts';

export interface AttestationOptions {
  readonly username?: string;
  readonly groups?: string[];
  readonly timeMs?: number;
}

/** The manifest as the mutating webhook returns it. */
export function attested(manifest: Manifest, options: AttestationOptions = {}): Manifest {
  const { username = 'alice', groups = ['devs', 'system:authenticated'], timeMs = Date.now() } = options;
  const requester = { username, uid: '', groups, time: formatTime(timeMs) };
  return {
    ...manifest,
    metadata: { ...manifest.metadata, finalizers: [revokeFinalizer] },
    spec: { ...(manifest['spec'] as object), requester },
  };
}
