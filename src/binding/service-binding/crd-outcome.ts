import { readBoundSchema } from '../../api/binding/bound-schema.ts';
import { boundSchemas } from '../../api/binding/names.ts';
import type { ObjectName } from '../../api/object.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { CrdView } from '../stores/consumer-stores.ts';
import { problemsOf } from '../stores/open-stores.ts';

/** What has become of one exported resource in the consumer. */
export type CrdOutcome =
  | { readonly kind: 'inSync' }
  /** The definition cannot be made as it is: nothing is bound through it. */
  | { readonly kind: 'refused'; readonly reason: RefusedReason; readonly message: string }
  /** It is not, or not yet, as the provider wants it. With a `cause` it is tried again. */
  | { readonly kind: 'outOfSync'; readonly reason: OutOfSyncReason; readonly message: string; readonly cause?: unknown }
  /** Somebody else changed it at the same time: nothing is said before the next look. */
  | { readonly kind: 'again'; readonly cause: unknown };

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

/** With a reason when there is one that cannot be used. */
const noBoundSchema = (name: string, clusterNamespace: string, unreadable?: string): CrdOutcome =>
  refused(
    'BoundSchemaFetchFailed',
    unreadable === undefined
      ? `the provider exports ${name}, but has no BoundSchema of that name in its namespace ${clusterNamespace}; its backend has to create it`
      : `BoundSchema ${name} in the provider's namespace ${clusterNamespace} cannot be read: ${unreadable}; the provider has to correct it`,
  );

export const notAllowed = (name: string): CrdOutcome =>
  refused(
    'ResourceNotAllowed',
    `the provider exports ${name}, which is not among the resources that may be bound in this cluster; have it allowed, or delete the binding`,
  );

export const foreignCrd = (name: string, binding: string): CrdOutcome =>
  refused(
    'ForeignCustomResourceDefinition',
    `CustomResourceDefinition ${name} exists and was not made for APIServiceBinding ${binding}; it is left as it is. Delete one of the two`,
  );

export const notWritten = (what: string, why: string, cause: unknown): CrdOutcome => ({
  kind: 'outOfSync',
  reason: 'CustomResourceDefinitionNotWritten',
  message: `${what} could not be written: ${why}; it is tried again`,
  cause,
});

export const terminating = (name: string): CrdOutcome => ({
  kind: 'outOfSync',
  reason: 'CustomResourceDefinitionTerminating',
  message: `CustomResourceDefinition ${name} is being deleted; it is made anew once it is gone`,
});

/** Two kinds of one group may not share a name; the API server then serves the second one not at all. */
export function namesOutcome({ name, conditions }: CrdView): CrdOutcome {
  const names = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
  if (!names) return inSync;
  return {
    kind: 'outOfSync',
    reason: 'CustomResourceDefinitionNamesNotAccepted',
    message: `CustomResourceDefinition ${name} is not served: ${names.message || names.reason}; delete the definition that has the name`,
  };
}

/** Why the store has no BoundSchema of that name: there is none, or it is there and cannot be read. */
export async function missingSchema(client: Client, name: ObjectName, signal: AbortSignal): Promise<CrdOutcome> {
  const { namespace = '' } = name;
  try {
    const read = readBoundSchema(await client.get(boundSchemas, name, { signal }));
    return noBoundSchema(name.name, namespace, read.ok ? undefined : problemsOf(read.errors).join(', '));
  } catch (error) {
    signal.throwIfAborted();
    return noBoundSchema(name.name, namespace, isNotFound(error) ? undefined : describe(error));
  }
}
