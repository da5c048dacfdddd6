import type { KubeObject, Resource } from '../../../src/api/object.ts';
import { InformerStore } from '../../../src/kube/informer-store.ts';
import { silentLog } from '../../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../src/kube/store.ts';
import { SimulatedClock } from '../simulated-clock.ts';

const anything: Resource = { group: 'test.example', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true };

/** A watch that has not listed its objects. */
export function unlisted<T extends Projected>(
  spec: StoreSpec<T>,
  clock: SimulatedClock,
): StoreHandle<T> & { readonly store: InformerStore<T> } {
  const store = new InformerStore(spec, clock, silentLog);
  return { store, release: () => store.close() };
}

/** A synced store without a watch that contains `objects`; `apply` adds others. */
export function storeOf<T extends Projected>(
  objects: readonly KubeObject[],
  project: (object: KubeObject) => T | undefined,
): InformerStore<T> {
  const store = new InformerStore({ resource: anything, project }, new SimulatedClock(), silentLog);
  const list = store.beginList();
  list.add(objects);
  list.commit();
  return store;
}
