import assert from 'node:assert/strict';
import { installInventoryKinds, removeInventoryKinds } from '../../../sandbox/inventory-kinds.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { componentReconcilers } from '../../../src/api/inventory/names.ts';
import { apiVersionOf } from '../../../src/api/object.ts';
import { retryConflict } from '../../../src/engine/result.ts';
import { Breakers } from '../../../src/inventory/manager/breakers.ts';
import { RegistrationReconciler, Registrations } from '../../../src/inventory/manager/registrations.ts';
import { registrationView } from '../../../src/inventory/stores/registration-view.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import type { Client } from '../../../src/kube/client.ts';
import { ApiError, isConflict } from '../../../src/kube/errors.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { sharedPlane } from '../../support/plane.ts';

describe('a registration that is deleted and created again while a status write is on its way', () => {
  const name = 'network';
  const registration = {
    apiVersion: apiVersionOf(componentReconcilers),
    kind: componentReconcilers.kind,
    metadata: { name },
    spec: { endpoint: { url: 'http://127.0.0.1:1' } },
  };
  let plane: Plane;
  let cluster: OpenCluster;

  before(async function () {
    this.timeout(240_000);
    plane = await sharedPlane();
    await installInventoryKinds(plane);
    cluster = openCluster(await fileCredentials(plane.adminKubeconfig), { clock: systemClock });
  });
  after(async function () {
    this.timeout(120_000);
    await cluster?.close();
    await removeInventoryKinds(plane);
  });

  it('does not get the conditions of the deleted one, and is reconciled again', async function () {
    this.timeout(60_000);
    const { client } = cluster;
    await client.create(componentReconcilers, registration);
    const { store, release } = cluster.watch({ resource: componentReconcilers, project: registrationView });
    const registrations = new Registrations(store);
    await registrations.whenSynced(AbortSignal.timeout(30_000));
    let replacedUid: string | undefined;
    const late: Pick<Client, 'mergePatch'> = {
      async mergePatch(...write) {
        if (replacedUid === undefined) {
          replacedUid = registrations.view(name)?.uid;
          await client.delete(componentReconcilers, { name });
          await client.create(componentReconcilers, registration);
        }
        return client.mergePatch(...write);
      },
    };
    const reconciler = new RegistrationReconciler({
      client: late as Client,
      registrations,
      breakers: new Breakers({ clock: systemClock, onAdmitting() {}, onStateChange() {} }),
      clock: systemClock,
    });
    const reconcile = () => reconciler.reconcile(name, AbortSignal.timeout(30_000));

    const result = await reconcile();
    assert.ok(result.kind === 'retry' && result.cause instanceof ApiError && isConflict(result.cause));
    assert.deepEqual(result, retryConflict(result.cause));
    assert.equal((await client.get(componentReconcilers, { name })).status, undefined);

    const isWatched = (): boolean => ![undefined, replacedUid].includes(registrations.view(name)?.uid);
    await until('the new registration in the store', isWatched, { timeoutMs: 30_000, everyMs: 20 });
    assert.deepEqual(await reconcile(), { kind: 'done' });
    assert.notEqual((await client.get(componentReconcilers, { name })).status, undefined);
    release();
  });
});
