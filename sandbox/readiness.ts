import type { PlaneClient } from './plane-client.ts';
import { whenServed } from './served.ts';

export async function apiserverReady(client: PlaneClient): Promise<boolean> {
  const answer = await client.probe('/readyz').catch(() => undefined);
  return answer?.status === 200;
}

/** Whether the controller manager has created the ServiceAccount that Pods in `default` need. */
export async function defaultServiceAccountExists(client: PlaneClient): Promise<boolean> {
  return (await client.probe('/api/v1/namespaces/default/serviceaccounts/default')).status === 200;
}

interface NodeObject {
  readonly spec?: { readonly taints?: unknown[] };
  readonly status?: { readonly conditions?: { readonly type: string; readonly status: string }[] };
}

/** Whether a node is Ready and has lost the taint of new nodes, so that the scheduler assigns Pods at once. */
export async function nodeTakesPods(client: PlaneClient, name: string): Promise<boolean> {
  const node = (await client.probe(`/api/v1/nodes/${name}`)).body as NodeObject;
  const ready = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
  return ready && (node.spec?.taints ?? []).length === 0;
}

/** Creates the node, whose status kwok reports. */
export async function createNode(client: PlaneClient, name: string): Promise<void> {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' } },
  };
  const { status, body } = await client.call('POST', '/api/v1/nodes', node);
  if (status !== 201) throw new Error(`creating node ${name} failed: ${status} ${JSON.stringify(body)}`);
}

/** Applies CRDs (files or folders of YAML) and waits until they are served. */
export async function applyCrds(client: PlaneClient, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  const files = paths.flatMap((path) => ['-f', path]);
  // Server-side apply, because a large schema does not fit the annotation of a client-side apply.
  await client.kubectl(['apply', '--server-side', ...files]);
  await whenCrdsServed(client, paths);
}

/** Resolves once the API server serves the kinds of the CRDs in files or folders of YAML. */
export async function whenCrdsServed(client: PlaneClient, paths: readonly string[]): Promise<void> {
  const files = paths.flatMap((path) => ['-f', path]);
  const { stdout } = await client.kubectl(['get', '-o', 'name', ...files]);
  const names = stdout
    .trim()
    .split('\n')
    .map((line) => line.slice(line.indexOf('/') + 1));
  await Promise.all(names.map((name) => whenServed(client, name)));
}
