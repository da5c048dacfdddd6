import type { KubeObject } from '../../api/object.ts';
import type { FieldError, Read } from '../../api/schema/read.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Projected, Store, StoreHandle, StoreSpec } from '../../kube/store.ts';
import type { Log } from '../../observe/log.ts';
import { type CommonView, commonView } from './common-view.ts';

/** Stores that were opened together and are released together. */
export interface OpenedStores<Stores> {
  readonly stores: Stores;
  readonly all: readonly Store<Projected>[];
  /** Resolves when all stores are synced. Rejects if a store is closed or `signal` aborts first. */
  whenSynced(signal?: AbortSignal): Promise<void>;
  /** Ends this use of all stores. */
  release(): void;
}

type Open = <T extends Projected>(spec: StoreSpec<T>) => Store<T>;

/** Opens stores of one cluster. `openAll` calls its argument once for each store, and returns an object with the stores by name. */
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

/** Builds a view from the metadata and the validated spec. It may read the status, which is not validated. */
export type ViewBuilder<Spec, T extends CommonView> = (common: CommonView, spec: Spec, object: KubeObject) => T;

/**
 * Returns the function from an object to the view that a store keeps. If the spec of an object is not valid, the function logs the object
 * and returns undefined, so that the store omits it. With `placeholder`, it logs, too, but returns the view with the placeholder as its
 * spec and with `specProblem`. It does not validate the status, because an object with an unexpected condition must not look deleted. For
 * an object without uid or resourceVersion, it returns undefined without a log line.
 */
export const projection =
  <Spec, T extends CommonView>(
    read: (object: unknown) => Read<{ spec: Spec }>,
    view: ViewBuilder<Spec, T>,
    log: Log,
    placeholder?: Spec,
  ) =>
  (object: KubeObject): T | undefined => {
    const common = commonView(object);
    if (!common) return undefined;
    const { apiVersion, kind, spec } = object;
    const result = read({ apiVersion, kind, spec, metadata: {} });
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

/** Formats each error as `<field> <message>`. */
export const problemsOf = (errors: readonly FieldError[]): string[] =>
  errors.map(({ field, message }) => `${field} ${message}`);
