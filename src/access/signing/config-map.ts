import { apiVersionOf, type KubeObject, type ObjectName } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { configMaps } from '../../api/resources.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';

/** A merge patch of a ConfigMap; null removes an entry. */
interface ConfigMapPatch {
  readonly metadata?: { readonly annotations: Readonly<Record<string, string>> };
  readonly data: Readonly<Record<string, string | null>>;
}

/** Patches a ConfigMap of the server, and creates it if it does not exist. Resolves to the result. Rejects as the client does. */
export async function patchConfigMap(
  client: Client,
  name: ObjectName,
  patch: ConfigMapPatch,
  options: { signal?: AbortSignal },
): Promise<KubeObject> {
  try {
    return await client.mergePatch(configMaps, name, patch, options);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  // Server-side apply instead of create, because RBAC can restrict the former to this name.
  const metadata = { ...name, labels: { ...ownLabels } };
  const empty = { apiVersion: apiVersionOf(configMaps), kind: configMaps.kind, metadata };
  await client.apply(configMaps, empty, { ...options, fieldManager: 'drawbridge' });
  return client.mergePatch(configMaps, name, patch, options);
}
