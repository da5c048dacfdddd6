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

/**
 * Patches a ConfigMap, and creates it first if it does not exist. Resolves to the patched ConfigMap. Rejects as
 * the client does.
 */
export async function createOrPatchConfigMap(
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
  // Create by server-side apply: its URL has the name, so a Role can limit the verb create to this ConfigMap.
  const metadata = { ...name, labels: { ...ownLabels } };
  const empty = { apiVersion: apiVersionOf(configMaps), kind: configMaps.kind, metadata };
  await client.apply(configMaps, empty, { ...options, fieldManager: 'drawbridge' });
  return client.mergePatch(configMaps, name, patch, options);
}
