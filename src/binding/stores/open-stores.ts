import type { KubeObject } from '../../api/object.ts';
import { type Kind, type ObjectOf, readObject } from '../../api/schema/kind.ts';
import type { FieldError } from '../../api/schema/read.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Projected, Store, StoreHandle, StoreSpec } from '../../kube/store.ts';
import type { Log } from '../../observe/log.ts';
import { type CommonView, commonView } from './common-view.ts';

export interface OpenedStores<Stores> {
  readonly stores: Stores;
  readonly all: readonly Store<Projected>[];
  /** Rejects if a store is closed first. */
  whenSynced(signal?: AbortSignal): Promise<void>;
  release(): void;
}

type Open = <T extends Projected>(spec: StoreSpec<T>) => Store<T>;

/** `openAll` calls its argument once for each store. */
export function openStores<Stores>(cluster: Cluster, openAll: (open: Open) => Stores): OpenedStores<Stores> {
  const handles: StoreHandle<Projected>[] = [];
  const stores = openAll((spec) => {
    const handle = cluster.watch(spec);
    handles.push(handle as unknown as StoreHandle<Projected>);
    return handle.store;
  });
  const all = handles.map(({ store }) => store);
  return {
    stores,
    all,
    async whenSynced(signal) {
      await Promise.all(all.map((store) => store.whenSynced(signal)));
    },
    release() {
      for (const handle of handles) handle.release();
    },
  };
}

/** From the metadata and the validated spec. The status is not validated. */
export type ViewBuilder<Spec, T extends CommonView> = (common: CommonView, spec: Spec, object: KubeObject) => T;

/**
 * An invalid object is logged and left out or, with `placeholder`, kept with `specProblem`. The
 * status is not validated: an unexpected condition must not make an object look deleted.
 */
export const projection =
  <K extends Kind, T extends CommonView>(
    objectKind: K,
    view: ViewBuilder<ObjectOf<K>['spec'], T>,
    log: Log,
    placeholder?: ObjectOf<K>['spec'],
  ) =>
  (object: KubeObject): T | undefined => {
    const common = commonView(object);
    if (!common) return undefined;
    const { apiVersion, kind, spec } = object;
    const result = readObject(objectKind, { apiVersion, kind, spec, metadata: {} });
    if (result.ok) return view(common, result.value.spec, object);
    const problems = problemsOf(result.errors);
    const consequence = placeholder === undefined ? 'treats it as absent' : 'does not use its spec';
    log.warn(
      `an object is not valid; the server ${consequence}; correct the fields in problems, or ask the provider to, if the object is in its cluster`,
      {
        kind,
        object: common.key,
        problems,
      },
    );
    return placeholder && { ...view(common, placeholder, object), specProblem: problems.join(', ') };
  };

export const problemsOf = (errors: readonly FieldError[]): string[] =>
  errors.map(({ field, message }) => `${field} ${message}`);
