import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { keyOf } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import { ApiError } from '../kube/errors.ts';
import type { Store } from '../kube/store.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';

/** A watch that fails for longer ends the command. */
const MAX_FAILING_MS = 20_000;
/** Between checks of the watches, and calls of `tick`. */
const CHECK_MS = 1000;

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

export interface Followed {
  readonly resource: Resource;
  /** Default: every object in `scope`. */
  readonly name?: ObjectName;
  readonly scope?: { readonly namespace?: string };
}

export interface FollowOptions<T> {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /**
   * For each existing object, then each change; a deletion has no `object`, a new one no `before`.
   * A result or an error ends the watch.
   */
  readonly onChange: (object: KubeObject | undefined, before: KubeObject | undefined) => T | undefined;
  /** Every second. An error that it throws ends the watch. */
  readonly tick?: () => void;
  /** How the user continues after a failure, as the end of the message. */
  readonly toContinue: string;
}

/**
 * Watches until `onChange` returns a result; it gets undefined for a named object that does not
 * exist. Rejects with a Problem after 20 s of failures, ApiError 401 or 403, the error of a
 * callback, or the reason of `signal`.
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

/** The first 403 or the second 401: the token may just have been replaced. */
const refusal = (codes: readonly number[]): number | undefined =>
  codes.find((code) => code === 403) ?? (codes.length > 1 ? codes[0] : undefined);

const watchLost = (reason: string, toContinue: string): Problem =>
  new Problem(
    exits.failed,
    `lost the watch: ${reason}; this does not affect the requests; check the network and the API server. ${toContinue}`,
  );
