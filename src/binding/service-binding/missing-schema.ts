import { readBoundSchema } from '../../api/binding/bound-schema.ts';
import { boundSchemas } from '../../api/binding/names.ts';
import type { ObjectName } from '../../api/object.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { problemsOf } from '../stores/project.ts';
import { type CrdOutcome, noBoundSchema } from './crd-outcome.ts';

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
