import {
  apiServiceBindingBundles,
  apiServiceBindings,
  apiServiceExports,
  bindConditions,
  claimableAnnotation,
  clusterBindingName,
  clusterBindings,
} from '../../api/binding/names.ts';
import type { BindReason } from '../../api/binding/reasons.ts';
import { sameConditions } from '../../api/conditions.ts';
import { apiVersionOf } from '../../api/object.ts';
import { namespaces } from '../../api/resources.ts';
import { done, notReady, type Reconciler, type Result, retry } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isAlreadyExists, isNotFound } from '../../kube/errors.ts';
import { type BindConditionUpdate, conditionFalse, conditionTrue, setConditionsAndReady } from '../conditions.ts';
import type { ProviderSession, Sessions } from '../sessions/provider-session.ts';
import type { BindingView, BundleView, ConsumerStores } from '../stores/consumer-stores.ts';
import type { DeletedExports } from './deleted-exports.ts';
import { planBundle } from './plan-bundle.ts';

export interface BundleDeps {
  readonly client: Client;
  readonly stores: Pick<ConsumerStores, 'bindings' | 'bundles'>;
  readonly sessions: Sessions;
  readonly deleted: DeletedExports;
  readonly clock: Clock;
}

interface Outcome {
  readonly synced: BindConditionUpdate;
  readonly result: Result;
}

/**
 * Creates a binding for each export of the provider, and deletes the bundle's bindings of deleted
 * exports. The key is the bundle's name. Failed creates and deletes set `Synced` to False.
 */
export class BundleReconciler implements Reconciler {
  readonly #deps: BundleDeps;

  constructor(deps: BundleDeps) {
    this.#deps = deps;
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { stores, sessions } = this.#deps;
    const bundle = stores.bundles.get(name);
    if (!bundle || bundle.deleting) return done;
    const found = sessions.lookup(bundle.secretRef);
    if (found.kind === 'pending') return notReady(`the session of bundle ${name}`);
    if (found.kind === 'invalid') {
      // The session of an earlier kubeconfig may still serve, but does not count.
      await this.#report(
        bundle,
        [conditionFalse(bindConditions.secretValid, 'Error', found.reason, found.message)],
        signal,
      );
      return done;
    }
    const valid = conditionTrue(bindConditions.secretValid);
    const { session } = found;
    if (session.state.kind === 'connecting') {
      await this.#report(bundle, [valid], signal);
      return notReady(`the exports of bundle ${name}`);
    }
    const { synced, result } = await this.#sync(bundle, session, signal);
    await this.#report(bundle, [valid, synced], signal);
    return result;
  }

  async #sync(bundle: BundleView, session: ProviderSession, signal: AbortSignal): Promise<Outcome> {
    let exports: ReadonlySet<string>;
    try {
      exports = areExportsWatched(session) ? watchedExports(session) : await listedExports(session, signal);
    } catch (error) {
      signal.throwIfAborted();
      // The next poll retries.
      return failed(
        'ListExportsFailed',
        'Error',
        `the exports of the provider could not be listed: ${describe(error)}; the server retries; if the provider denies the list, ask it for a kubeconfig that permits it`,
        done,
      );
    }
    const { stores, deleted } = this.#deps;
    const plan = planBundle({
      bundle,
      exports,
      bindings: stores.bindings.list(),
      isDeleted: (name) => deleted.has(session, name),
    });
    const errors = await this.#create(bundle, plan.create, signal);
    const keptMessages = plan.kept.length > 0 ? [keptMessage(plan.kept, deletionNotObserved, bundle)] : [];
    if (plan.delete.length > 0) {
      try {
        const [doubt, live] = await Promise.all([deletionDoubt(session, signal), listedExports(session, signal)]);
        if (doubt === undefined) errors.push(...(await this.#delete(plan.delete, live, signal)));
        else keptMessages.unshift(keptMessage(plan.delete, `the provider has deleted exports, but ${doubt}`, bundle));
      } catch (error) {
        signal.throwIfAborted();
        errors.push(error);
      }
    }
    if (errors.length > 0) {
      const message = `failed calls: ${errors.length}; first error: ${describe(errors[0])}; the server retries`;
      return failed('SyncErrors', 'Warning', message, retry(errors[0]));
    }
    if (keptMessages.length > 0) return failed('ExportsVanished', 'Warning', keptMessages.join('. '), done);
    return { synced: conditionTrue(bindConditions.synced), result: done };
  }

  async #create(bundle: BundleView, names: readonly string[], signal: AbortSignal): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (const name of names) {
      try {
        await this.#deps.client.create(apiServiceBindings, bindingFor(bundle, name), { signal });
      } catch (error) {
        signal.throwIfAborted();
        // A binding of that name exists and keeps its owner.
        if (!isAlreadyExists(error)) errors.push(error);
      }
    }
    return errors;
  }

  /** Returns the errors. */
  async #delete(
    bindings: readonly BindingView[],
    liveExports: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (const { name, uid } of bindings) {
      if (liveExports.has(name)) continue;
      try {
        await this.#deps.client.delete(apiServiceBindings, { name }, { uid, signal });
      } catch (error) {
        signal.throwIfAborted();
        errors.push(error);
      }
    }
    return errors;
  }

  async #report(bundle: BundleView, updates: readonly BindConditionUpdate[], signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    const { name, uid, resourceVersion } = bundle;
    const conditions = setConditionsAndReady(bundle.conditions, updates, clock.now());
    if (sameConditions(conditions, bundle.conditions)) return;
    const patch = { metadata: { uid, resourceVersion }, status: { conditions } };
    try {
      await client.mergePatch(apiServiceBindingBundles, { name }, patch, { subresource: 'status', signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

function bindingFor({ name: owner, uid, secretRef, annotations }: BundleView, name: string) {
  const claimable = annotations[claimableAnnotation];
  const { kind } = apiServiceBindingBundles;
  return {
    apiVersion: apiVersionOf(apiServiceBindings),
    kind: apiServiceBindings.kind,
    metadata: {
      name,
      ...(claimable === undefined ? {} : { annotations: { [claimableAnnotation]: claimable } }),
      ownerReferences: [
        { apiVersion: apiVersionOf(apiServiceBindingBundles), kind, name: owner, uid, controller: true },
      ],
    },
    spec: { kubeconfigSecretRef: { ...secretRef } },
  };
}

const deletionNotObserved = 'the provider no longer lists these exports, but the watch did not show their deletion';

function keptMessage(kept: readonly BindingView[], why: string, bundle: BundleView): string {
  const names = kept.map(({ name }) => name).sort();
  const listed = names.slice(0, 10).join(', ') + (names.length > 10 ? ` and ${names.length - 10} more` : '');
  return `the provider has no export for ${listed}, and the server keeps these bindings: ${why}; to unbind, which deletes the objects of these kinds in this cluster, run kubectl delete sbb ${bundle.name} --cascade=orphan, then delete the bindings`;
}

const failed = (reason: BindReason, severity: 'Error' | 'Warning', message: string, result: Result): Outcome => ({
  synced: conditionFalse(bindConditions.synced, severity, reason, message),
  result,
});

/** Above this `Store.ageMs`, a watch counts as broken. */
const staleMs = 60_000;

const areExportsWatched = ({ stores }: ProviderSession): boolean =>
  stores.exports.synced && stores.exports.ageMs <= staleMs;

const watchedExports = ({ stores }: ProviderSession): Set<string> =>
  new Set([...stores.exports.list()].map(({ name }) => name));

/** Lists the exports live: while their watch is broken, and before a delete. */
async function listedExports(session: ProviderSession, signal: AbortSignal): Promise<Set<string>> {
  const { items } = await session.client.list(apiServiceExports, { namespace: session.clusterNamespace, signal });
  return new Set(items.map(({ metadata }) => metadata.name));
}

/** Signs of an accident: no readable ClusterBinding, or a namespace that is gone or new. */
async function deletionDoubt(session: ProviderSession, signal: AbortSignal): Promise<string | undefined> {
  const { client, clusterNamespace: namespace, clusterNamespaceUid } = session;
  try {
    await client.get(clusterBindings, { namespace, name: clusterBindingName }, { signal });
  } catch (error) {
    if (!(error instanceof ApiError && [403, 404].includes(error.code))) throw error;
    const what = `ClusterBinding ${clusterBindingName}`;
    return error.code === 403
      ? `its ${what} cannot be read: ${error.message}`
      : `its namespace ${namespace} has no ${what}`;
  }
  try {
    const { metadata } = await client.get(namespaces, { name: namespace }, { signal });
    if (metadata.deletionTimestamp !== undefined) return `its namespace ${namespace} is being deleted`;
    if (clusterNamespaceUid !== undefined && metadata.uid !== clusterNamespaceUid) {
      return `its namespace ${namespace} was deleted and created again`;
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Providers need not grant permission to read the namespace.
    if (error.code === 403) return undefined;
    if (error.code === 404) return `its namespace ${namespace} does not exist`;
    throw error;
  }
}
