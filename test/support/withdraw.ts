import assert from 'node:assert/strict';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { until } from '../../sandbox/wait.ts';
import { own } from '../../src/kit/json-value.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources?: readonly string[];
}

interface Withdrawn {
  /** A ClusterRole with a ClusterRoleBinding of the same name, whose first subject is the server's ServiceAccount. */
  readonly clusterRole: string;
  readonly resource: string;
  readonly group: string;
}

/**
 * Removes a resource from the rules of a ClusterRole, and waits until the API server denies its watch. Resolves to a function that
 * restores it, and waits until the API server allows the watch.
 */
async function withdraw(plane: PlaneClient, withdrawn: Withdrawn): Promise<() => Promise<void>> {
  const { clusterRole, resource, group } = withdrawn;
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const role = `${rbac}/clusterroles/${clusterRole}`;
  const before = (await read(plane, role))['rules'] as Rule[];
  const subjects = (await read(plane, `${rbac}/clusterrolebindings/${clusterRole}`))['subjects'];
  const [{ namespace, name } = { namespace: '', name: '' }] = subjects as { namespace: string; name: string }[];
  const user = `system:serviceaccount:${namespace}:${name}`;
  const put = async (rules: readonly Rule[], allowed: boolean): Promise<void> => {
    const { status } = await plane.call('PATCH', role, { rules });
    assert.equal(status, 200);
    const spec = { user, resourceAttributes: { verb: 'watch', group, resource } };
    const isDecided = async (): Promise<boolean> => {
      const answer = await plane.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec });
      return own(own(answer.body, 'status'), 'allowed') === allowed;
    };
    await until(`watch ${resource} to be ${allowed ? 'allowed' : 'denied'}`, isDecided, { timeoutMs: 30_000 });
  };
  const without = before
    .map((rule) => ({ ...rule, resources: (rule.resources ?? []).filter((one) => one !== resource) }))
    .filter((rule) => rule.resources.length > 0);
  await put(without, false);
  return () => put(before, true);
}

const clearWithinMs = 5_000;

/** A server that watches what `withdrawn` allows. */
interface WatchingServer {
  readonly plane: PlaneClient;
  /** The text of `/readyz`. */
  readonly readiness: () => Promise<string>;
}

/** Tests that readiness names a store whose permission is withdrawn while no object changes. Call it in a `describe`. */
export function itNamesWithdrawn(withdrawn: Withdrawn, server: () => WatchingServer, namedWithinMs: number): void {
  let restore: () => Promise<void>;

  it(`is named by readiness within ${namedWithinMs / 1000} s`, async function () {
    this.timeout(namedWithinMs + 80_000);
    const { plane, readiness } = server();
    assert.doesNotMatch(await readiness(), /no longer allows/);
    restore = await withdraw(plane, withdrawn);
    const message = `no longer allows list and watch of: ${withdrawn.resource};`;
    const isNamed = async (): Promise<boolean> => (await readiness()).includes(message);
    await until('readiness to name the store', isNamed, { timeoutMs: namedWithinMs });
  });

  it(`is in force again within ${clearWithinMs / 1000} s of its return`, async function () {
    this.timeout(90_000);
    const { readiness } = server();
    await restore();
    const isClear = async (): Promise<boolean> => !/no longer allows/.test(await readiness());
    await until('readiness', isClear, { timeoutMs: clearWithinMs });
  });
}

async function read(plane: PlaneClient, path: string): Promise<Record<string, unknown>> {
  const { status, body } = await plane.call('GET', path);
  assert.equal(status, 200, path);
  return body as Record<string, unknown>;
}
