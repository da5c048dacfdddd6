import { randomBytes } from 'node:crypto';
import { attachPlane, type Plane, startPlane } from '../../sandbox/plane.ts';
import { until } from '../../sandbox/wait.ts';

let shared: Promise<Plane> | undefined;

/**
 * The plane of this test run, started at the first call. With DRAWBRIDGE_SANDBOX set to the folder that
 * `make sandbox` prints, tests use that running plane, which saves the start.
 */
export function sharedPlane(): Promise<Plane> {
  const directory = process.env['DRAWBRIDGE_SANDBOX'];
  shared ??= directory ? attachPlane(directory) : startPlane({ onProgress: (line) => console.error(line) });
  return shared;
}

/** Ends the plane of this test run, if there is one. */
export async function stopSharedPlane(): Promise<void> {
  const plane = await shared?.catch(() => undefined);
  shared = undefined;
  await plane?.stop();
}

/** Creates a namespace for one test, waits until Pods can be created in it, and returns its name. Default: on the shared plane. */
export async function testNamespace(
  prefix: string,
  on?: Plane,
  name = `${prefix}-${randomBytes(4).toString('hex')}`,
): Promise<string> {
  const plane = on ?? (await sharedPlane());
  const { status, body } = await plane.call('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  });
  if (status !== 201) throw new Error(`creating namespace ${name} failed: ${status} ${JSON.stringify(body)}`);
  const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
  await until(`the ServiceAccount of ${name}`, async () => (await plane.probe(account)).status === 200, {
    timeoutMs: 30_000,
    everyMs: 10,
  });
  return name;
}
