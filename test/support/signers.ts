import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { keySecretName, readKeys } from '../../src/access/signing/key-secret.ts';
import { type KeyRing, Signer, type SigningKeys } from '../../src/access/signing/signer.ts';
import { revokeFinalizer } from '../../src/api/access/names.ts';
import type { KubeObject } from '../../src/api/object.ts';
import { formatTime } from '../../src/kit/clock.ts';
import type { Manifest } from './access-requests.ts';

/** A key that depends only on the seed. */
export const keyOf = (seed: string): Uint8Array => Buffer.alloc(32, seed);

export const ringOf = (keys: SigningKeys | undefined): KeyRing => ({ keys, refresh: () => Promise.resolve() });

export const signerOf = (seed: string): Signer => new Signer(ringOf({ current: keyOf(seed) }));

/** Signs with the keys of the server that is or was installed on this plane. */
export async function signerOn(plane: PlaneClient): Promise<Signer> {
  const { status, body } = await plane.call('GET', `/api/v1/namespaces/drawbridge-system/secrets/${keySecretName}`);
  if (status !== 200) throw new Error(`no signing keys on the plane: ${status}`);
  return new Signer(ringOf(readKeys(body as KubeObject)));
}

export interface AttestationOptions {
  readonly namespace: string;
  readonly username?: string;
  readonly groups?: string[];
  readonly timeMs?: number;
}

/** The manifest as the mutating webhook returns it. */
export function attested(signer: Signer, manifest: Manifest, options: AttestationOptions): Manifest {
  const { namespace, username = 'alice', groups = ['devs'], timeMs = Date.now() } = options;
  const { kind, metadata } = manifest;
  const requester = { username, uid: '', groups, time: formatTime(timeMs) };
  const spec = manifest['spec'] as object;
  const signed = signer.signRequester({ kind, namespace, name: metadata.name ?? '', spec, requester });
  return {
    ...manifest,
    metadata: { ...metadata, finalizers: [revokeFinalizer] },
    spec: { ...spec, requester: { ...requester, ...signed } },
  };
}
