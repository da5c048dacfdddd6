import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { keyOf } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import { ApiError } from '../kube/errors.ts';
import type { Store } from '../kube/store.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';

/** The time after which a failing watch ends the command, milliseconds. */
const MAX_FAILING_MS = 20_000;
/** Interval between checks of the watches, and between calls of `tick`, milliseconds. */
const CHECK_MS = 1000;

/** An entry of the store that keeps the whole object. */
interface StoredObject {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly object: KubeObject;
}

const toStoredObject = (object: KubeObject): StoredObject => ({
  key: keyOf(object.metadata),
  uid: object.metadata.uid ?? '',
  resourceVersion: object.metadata.resourceVersion ?? '',
  object,
});

/** One object, or all objects of a resource, to watch. */
export interface Followed {
  readonly resource: Resource;
  /** One object; absent: every object in `scope`. */
  readonly name?: ObjectName;
  readonly scope?: { readonly namespace?: string };
}

/** The callbacks of a watch, and what ends it. */
export interface FollowOptions<T> {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /**
   * Called for each existing object, then for each change. `object` is undefined after a deletion; `before` is undefined for a new object.
   * A result other than undefined ends the watch, and so does an error that it throws.
   */
  readonly onChange: (object: KubeObject | undefined, before: KubeObject | undefined) => T | undefined;
  /** Called every second while the watch lasts. An error that it throws ends the watch. */
  readonly tick?: () => void;
  /** How the user continues after a watch failed, as the last sentences of the message. */
  readonly toContinue: string;
}

/**
 * Watches objects until `onChange` returns a result, and resolves to it. Rejects with a Problem if a watch fails for more than 20 s, with
 * ApiError 401 or 403 if the API server refuses the watch, with the error of a callback, or with the reason of `signal`. If a named object
 * does not exist at first, `onChange` is called with undefined.
 */
export async function follow<T>(
  connection: ClusterConnection,
  followed: readonly Followed[],
  options: FollowOptions<T>,
): Promise<T> {
  const { clock, signal, onChange, tick, toContinue } = options;
  const handles = followed.map(({ resource, name, scope }) =>
    connection.cluster.watch({
      resource,
      ...(name?.namespace === undefined ? {} : { namespace: name.namespace }),
      ...(scope ?? {}),
      ...(name ? { fieldSelector: `metadata.name=${name.name}` } : {}),
      project: toStoredObject,
    }),
  );
  let cancel = (): void => {};
  let refusalsBefore = connection.watchRefusals.length;
  try {
    return await new Promise<T>((resolve, reject) => {
      const report = (now: KubeObject | undefined, before?: KubeObject): void => {
        try {
          const result = onChange(now, before);
          if (result !== undefined) resolve(result);
        } catch (error) {
          reject(error);
        }
      };
      const check = (): void => {
        const failing = handles.map(({ store }) => store.failing).find((one) => one !== undefined);
        const refused = failing && refusal(connection.watchRefusals.slice(refusalsBefore));
        if (!failing) refusalsBefore = connection.watchRefusals.length;
        if (refused !== undefined) reject(new ApiError(refused, '', failing?.reason ?? ''));
        else if (failing && failing.forMs > MAX_FAILING_MS) reject(watchLost(failing.reason, toContinue));
        try {
          tick?.();
        } catch (error) {
          reject(error);
        }
        cancel = clock.schedule(CHECK_MS, check);
      };
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      if (signal.aborted) reject(signal.reason);
      for (const [index, { store }] of handles.entries()) {
        subscribe(store, signal, report, reject, followed[index]?.name !== undefined);
      }
      check();
    });
  } finally {
    cancel();
    for (const handle of handles) handle.release();
  }
}

function subscribe(
  store: Store<StoredObject>,
  signal: AbortSignal,
  report: (now: KubeObject | undefined, before?: KubeObject) => void,
  reject: (error: unknown) => void,
  named: boolean,
): void {
  store.whenSynced(signal).then(() => {
    if (named && [...store.list()].length === 0) report(undefined);
    store.subscribe((event) => {
      if (event.type === 'deleted') report(undefined, event.before.object);
      else report(event.now.object, event.type === 'updated' ? event.before.object : undefined);
    });
  }, reject);
}

/** The HTTP status that ends the command, if any: the first 403, but only the second 401, because the token may just have been replaced. */
const refusal = (codes: readonly number[]): number | undefined =>
  codes.find((code) => code === 403) ?? (codes.length > 1 ? codes[0] : undefined);

const watchLost = (reason: string, toContinue: string): Problem =>
  new Problem(
    exits.failed,
    `lost the watch: ${reason}; this does not affect the requests; check the network and the API server. ${toContinue}`,
  );
