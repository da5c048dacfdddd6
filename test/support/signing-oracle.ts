import assert from 'node:assert/strict';
import { callApi } from '../../sandbox/api-call.ts';
import { issue } from '../../sandbox/pki.ts';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { accessUrl, type Manifest } from './access-requests.ts';

/** The user in a review. */
export interface Claimed {
  readonly username: string;
  readonly groups: readonly string[];
}

interface Patch {
  readonly path: string;
  readonly value?: unknown;
}

/**
 * The value that the mutating webhook on `port` writes into `field` of the spec if `user` creates `manifest`. Any client that reaches the port
 * can send such a review; the server cannot distinguish it from a review of the API server.
 */
export async function attestationOf(
  plane: PlaneClient,
  port: number,
  field: 'requester' | 'author',
  manifest: Manifest,
  { namespace, user }: { readonly namespace: string; readonly user: Claimed },
): Promise<object> {
  const { kind } = manifest;
  const target = {
    server: `https://localhost:${port}`,
    authority: plane.authority.certificate,
    identity: issue(plane.authority, { commonName: 'passer-by' }),
  };
  const [, , group = '', version = '', , , resource = ''] = accessUrl(kind, namespace).split('/');
  const request = {
    uid: '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11',
    kind: { group, version, kind },
    resource: { group, version, resource },
    name: manifest.metadata.name,
    namespace,
    operation: 'CREATE',
    userInfo: user,
    object: manifest,
  };
  const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
  const path = `/mutate-${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`;
  const { status, body } = await callApi(target, 'POST', path, review);
  const { response } = body as { response?: { patch?: string } };
  assert.ok(status === 200 && response?.patch, JSON.stringify(body));
  const patches = JSON.parse(Buffer.from(response.patch, 'base64').toString()) as Patch[];
  const found = patches.find((patch) => patch.path === `/spec/${field}`)?.value;
  assert.ok(found && 'signature' in (found as object), JSON.stringify(patches));
  return found as object;
}
