import type { PlaneClient } from './plane-client.ts';
import { until } from './wait.ts';

interface Crd {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/**
 * Resolves once the API server serves the kind of a CRD in all its versions. The condition Established becomes True a moment earlier;
 * until then, calls get 404.
 */
export async function whenServed(client: PlaneClient, crd: string): Promise<void> {
  await until(`${crd} to be served`, () => isServed(client, crd), { timeoutMs: 30_000 });
}

async function isServed(client: PlaneClient, name: string): Promise<boolean> {
  const found = await client.probe(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
  if (found.status !== 200) return false;
  const { spec, status: crdStatus } = found.body as Crd;
  if (!crdStatus?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')) return false;
  const { group, names, versions } = spec;
  for (const version of versions.filter(({ served }) => served)) {
    const answer = await client.probe(`/apis/${group}/${version.name}/${names.plural}?limit=1`);
    if (answer.status !== 200) return false;
  }
  return true;
}
