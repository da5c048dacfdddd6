import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, keyOf, type Resource } from '../../api/object.ts';
import { CodedError } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.ts';
import { isOwnedBy } from './entry-objects.ts';

/** Tries of a write that others keep getting in the way of. */
const tries = 5;

/**
 * Sees to it that `object` exists, belongs to the entry `uid`, and that its field `own` is what `wanted` makes of what is there.
 * Rejects with CodedError `NameTaken` for an object of somebody else, and for one that nobody can make what it has to be; both stay as
 * they are.
 */
export async function ensureOwned(
  client: Client,
  resource: Resource,
  object: KubeObject,
  uid: string,
  signal: AbortSignal,
  field?: { readonly name: string; readonly wanted: (found: unknown) => unknown },
): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      await client.create(resource, object, { signal });
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    try {
      await correct(client, resource, object, uid, signal, field);
      return;
    } catch (error) {
      // Gone or changed between the two calls.
      if (tried === tries || !(isNotFound(error) || isConflict(error))) throw error;
    }
  }
}

async function correct(
  client: Client,
  resource: Resource,
  object: KubeObject,
  uid: string,
  signal: AbortSignal,
  field: { readonly name: string; readonly wanted: (found: unknown) => unknown } | undefined,
): Promise<void> {
  const found = await client.get(resource, object.metadata, { signal });
  if (!isOwnedBy(found, uid)) {
    throw new CodedError(
      'NameTaken',
      `${resource.kind} ${keyOf(object.metadata)} exists and does not belong to this entry; delete it`,
    );
  }
  // Whoever may make such an object can say whose it is as well.
  const fixed = found['immutable'] === true ? 'immutable' : 'roleRef';
  if (fixed === 'immutable' || !isDeepStrictEqual(found[fixed], object[fixed])) {
    throw new CodedError(
      'NameTaken',
      `${resource.kind} ${keyOf(object.metadata)} exists with another \`${fixed}\`, which cannot be changed; delete it`,
    );
  }
  if (!field) return;
  const wanted = field.wanted(found[field.name]);
  if (isDeepStrictEqual(wanted, found[field.name])) return;
  const { resourceVersion } = found.metadata;
  const patch = { metadata: { resourceVersion }, [field.name]: wanted };
  await client.mergePatch(resource, object.metadata, patch, { signal });
}
