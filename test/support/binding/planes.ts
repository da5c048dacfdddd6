import { attachPlane, type Plane, startPlane } from '../../../sandbox/plane.ts';

export type PlaneRole = 'provider' | 'consumer' | 'second-consumer';

const running = new Map<PlaneRole, Promise<Plane>>();

/**
 * A plane of this test run without Pods, started at the first call for its role. If DRAWBRIDGE_SANDBOX_PROVIDER,
 * DRAWBRIDGE_SANDBOX_CONSUMER, or DRAWBRIDGE_SANDBOX_SECOND_CONSUMER names the folder of a running plane, tests use that plane.
 */
export function bindingPlane(role: PlaneRole): Promise<Plane> {
  const directory = process.env[`DRAWBRIDGE_SANDBOX_${role.toUpperCase().replace('-', '_')}`];
  const plane =
    running.get(role) ??
    (directory
      ? attachPlane(directory)
      : startPlane({ components: ['kube-controller-manager'], onProgress: (line) => console.error(line) }));
  running.set(role, plane);
  return plane;
}

/** Ends the planes of this test run, if there are any. */
export async function stopBindingPlanes(): Promise<void> {
  const planes = [...running.values()];
  running.clear();
  await Promise.all(planes.map(async (plane) => (await plane.catch(() => undefined))?.stop()));
}
