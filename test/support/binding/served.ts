import { until } from '../../../sandbox/wait.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Client } from '../../../src/kube/client.ts';
import { isNotFound } from '../../../src/kube/errors.ts';

/**
 * Resolves once the API server answers for the kind of a CRD, in all versions that it serves. The CRD says Established a moment earlier:
 * a call in between finds no such path.
 */
export async function whenServed(client: Client, crd: string): Promise<void> {
  await until(`${crd} to be served`, () => isServed(client, crd).catch(unlessNotFound), { timeoutMs: 30_000 });
}

async function isServed(client: Client, crd: string): Promise<boolean> {
  const { spec, status } = await client.get(customResourceDefinitions, { name: crd });
  const established = array(own(status, 'conditions')).some(
    (one) => own(one, 'type') === 'Established' && own(one, 'status') === 'True',
  );
  if (!established) return false;
  const served = array(own(spec, 'versions')).filter((version) => own(version, 'served') === true);
  for (const version of served) {
    await client.raw(
      `/apis/${own(spec, 'group')}/${own(version, 'name')}/${own(own(spec, 'names'), 'plural')}?limit=1`,
    );
  }
  return true;
}

function unlessNotFound(error: unknown): false {
  if (isNotFound(error)) return false;
  throw error;
}

const array = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
