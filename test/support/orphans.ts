import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { requestLabel } from '../../src/api/access/names.ts';
import { accessUrl, type StoredRequest } from './access-requests.ts';

/** The requests of both kinds in a namespace. */
export async function requestsIn(plane: PlaneClient, namespace: string): Promise<StoredRequest[]> {
  const kinds = ['PodAccessRequest', 'ExecAccessRequest'];
  const lists = kinds.map(async (kind) =>
    // Items of a list lack their kind.
    (await itemsOf<StoredRequest>(plane, accessUrl(kind, namespace))).map((item) => ({ ...item, kind })),
  );
  return (await Promise.all(lists)).flat();
}

/** Objects of requests that do not exist: `roles debug-1a2b3c4d-access`. Must be empty once the server is idle. */
export async function orphansIn(plane: PlaneClient, namespace: string): Promise<string[]> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const urls = {
    pods: `/api/v1/namespaces/${namespace}/pods`,
    roles: `${rbac}/roles`,
    rolebindings: `${rbac}/rolebindings`,
  };
  const children = await Promise.all(
    Object.entries(urls).map(async ([plural, url]) => {
      const items = await itemsOf<LabelledObject>(plane, `${url}?labelSelector=${encodeURIComponent(requestLabel)}`);
      return items.map(({ metadata }) => ({
        what: `${plural} ${metadata.name}`,
        owner: metadata.labels[requestLabel],
      }));
    }),
  );
  // Read last, so that the children of a request created in between do not count as orphans.
  const live = new Set((await requestsIn(plane, namespace)).map((request) => request.metadata.uid));
  return children.flat().flatMap(({ what, owner }) => (owner !== undefined && live.has(owner) ? [] : [what]));
}

interface LabelledObject {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
}

async function itemsOf<T>(plane: PlaneClient, url: string): Promise<T[]> {
  const { status, body } = await plane.probe(url);
  if (status !== 200) throw new Error(`GET ${url}: ${status} ${JSON.stringify(body)}`);
  return (body as { items: T[] }).items;
}
