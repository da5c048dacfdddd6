import { boundSchemaKind } from '../../api/binding/bound-schema.ts';
import { boundSchemas } from '../../api/binding/names.ts';
import type { ObjectName } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { CrdView } from '../stores/consumer-stores.ts';
import { problemsOf } from '../stores/open-stores.ts';

/** The state of one exported resource in the consumer. */
export type CrdOutcome =
  | { readonly kind: 'inSync' }
  /** The CRD and its syncer stay as they were. `cause`: of a failed read, which is retried. */
  | { readonly kind: 'refused'; readonly reason: RefusedReason; readonly message: string; readonly cause?: unknown }
  /** It is being deleted, its names are not accepted, or a write failed, which is retried. */
  | { readonly kind: 'outOfSync'; readonly reason: OutOfSyncReason; readonly message: string; readonly cause?: unknown }
  /** Another client changed the object meanwhile. The conditions stay until the next reconcile. */
  | { readonly kind: 'conflict'; readonly cause: unknown };

export type RefusedReason =
  | 'BoundSchemaFetchFailed'
  | 'ForeignCustomResourceDefinition'
  | 'CustomResourceDefinitionCreateFailed'
  | 'CustomResourceDefinitionUpdateFailed'
  | 'ResourceNotAllowed';

type OutOfSyncReason =
  | 'CustomResourceDefinitionNotWritten'
  | 'CustomResourceDefinitionTerminating'
  | 'CustomResourceDefinitionNamesNotAccepted';

export const inSync: CrdOutcome = { kind: 'inSync' };

export const refused = (reason: RefusedReason, message: string): CrdOutcome => ({ kind: 'refused', reason, message });

const fetchFailed = (message: string): CrdOutcome => refused('BoundSchemaFetchFailed', message);

export const notAllowed = (name: string): CrdOutcome =>
  refused(
    'ResourceNotAllowed',
    `the provider exports ${name}, which may not be bound in this cluster; add it to --bindable, or delete the binding, with the objects of the kinds that it bound`,
  );

export const foreignCrd = (name: string, binding: string): CrdOutcome =>
  refused(
    'ForeignCustomResourceDefinition',
    `CustomResourceDefinition ${name} exists and is not owned by APIServiceBinding ${binding}; the server does not change it; delete the binding, with the objects of the kinds that it bound, or the definition, with its objects`,
  );

export const notWritten = (what: string, why: string, cause: unknown): CrdOutcome => ({
  kind: 'outOfSync',
  reason: 'CustomResourceDefinitionNotWritten',
  message: `${what} could not be written: ${why}; the server retries; if the API server of this cluster denies the write, permit it to the konnector`,
  cause,
});

export const terminating = (name: string): CrdOutcome => ({
  kind: 'outOfSync',
  reason: 'CustomResourceDefinitionTerminating',
  message: `CustomResourceDefinition ${name} is being deleted; the server creates it again afterwards`,
});

/** The names of a definition may be in use by another one. */
export function namesOutcome({ name, conditions }: CrdView): CrdOutcome {
  const names = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
  if (!names) return inSync;
  return {
    kind: 'outOfSync',
    reason: 'CustomResourceDefinitionNamesNotAccepted',
    message: `the API server does not accept the names of CustomResourceDefinition ${name}: ${names.message || names.reason}; delete the binding, with the objects of the kinds that it bound, or the CustomResourceDefinition that uses the name, with its objects`,
  };
}

/** A live read tells why the store lacks the BoundSchema. Rejects only if `signal` aborted. */
export async function missingSchemaOutcome(client: Client, key: ObjectName, signal: AbortSignal): Promise<CrdOutcome> {
  const { name, namespace = '' } = key;
  const missing = `the provider exports ${name} but has no BoundSchema of that name in namespace ${namespace}; ask the provider to create it`;
  const schema = `BoundSchema ${name} in the provider's namespace ${namespace}`;
  try {
    const read = readObject(boundSchemaKind, await client.get(boundSchemas, key, { signal }));
    if (read.ok) return fetchFailed(missing);
    return fetchFailed(`${schema} is not valid: ${problemsOf(read.errors).join(', ')}; ask the provider to correct it`);
  } catch (error) {
    signal.throwIfAborted();
    if (isNotFound(error)) return fetchFailed(missing);
    const message = `${schema} cannot be read: ${describe(error)}; the server retries; if the provider denies the read, ask it to grant this permission`;
    return { kind: 'refused', reason: 'BoundSchemaFetchFailed', message, cause: error };
  }
}
