import { apiVersionOf } from '../../api/object.ts';
import { configMaps } from '../../api/resources.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';

/** The policy `drawbridge-access` refuses this name in the server's namespace. */
export const probeName = 'drawbridge-probe';

/** Whether the API server runs admission policies. */
export type ProbeAnswer =
  | { readonly is: 'refused' }
  /** The policy is not in force, or the plugin is off. */
  | { readonly is: 'accepted' }
  | { readonly is: 'unproven'; readonly problem: string };

/** Sends a dry run that no webhook and no CRD refuses first. */
export async function probe(client: Client, namespace: string, signal: AbortSignal): Promise<ProbeAnswer> {
  const metadata = { name: probeName, namespace };
  const object = { apiVersion: apiVersionOf(configMaps), kind: configMaps.kind, metadata };
  try {
    await client.apply(configMaps, object, { fieldManager: 'drawbridge', force: true, dryRun: true, signal });
    return { is: 'accepted' };
  } catch (error) {
    signal.throwIfAborted();
    return answerOf(error);
  }
}

export function answerOf(error: unknown): ProbeAnswer {
  // RBAC names no causes, webhooks others. A policy of others may refuse first: then the plugin runs.
  const [cause] = error instanceof ApiError ? error.causes : [];
  if (cause?.message.startsWith("ValidatingAdmissionPolicy '")) return { is: 'refused' };
  return { is: 'unproven', problem: describe(error) };
}
