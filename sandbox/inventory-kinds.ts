import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlaneClient } from './plane-client.ts';
import { whenCrdsServed } from './readiness.ts';

const crds = join(fileURLToPath(new URL('..', import.meta.url)), 'charts/drawbridge/files/inventory-crds');

/** Installs the CRDs of the inventory. Resolves once they are served. */
export async function installInventoryKinds(plane: PlaneClient): Promise<void> {
  await plane.kubectl(['apply', '-f', crds]);
  await whenCrdsServed(plane, [crds]);
}

/** Deletes the CRDs and every object of their kinds. Resolves once they are gone, so that a test can install them again. */
export async function removeInventoryKinds(plane: PlaneClient): Promise<void> {
  const { stdout } = await plane.kubectl(
    ['get', 'clusterinventories.inventory.drawbridge.dev', '-A', '--ignore-not-found', '-o', namesOf],
    { reject: false },
  );
  // Removes the finalizers, because no server runs that would tear the entries down.
  for (const [namespace = '', name = ''] of stdout.split('\n').map((line) => line.split(' '))) {
    if (name === '') continue;
    const patch = ['--type=merge', '-p', '{"metadata":{"finalizers":null}}'];
    await plane.kubectl(['patch', 'clusterinventory', name, '-n', namespace, ...patch], { reject: false });
  }
  await plane.kubectl(['delete', '--ignore-not-found', '--timeout=60s', '-f', crds]);
}

const namesOf = 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\\n"}{end}';
