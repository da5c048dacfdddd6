import { boundSchemaName } from '../../api/binding/group-resource.ts';
import {
  apiServiceExports,
  apiServiceNamespaces,
  clusterNamespaceAnnotation,
  ownerLabel,
} from '../../api/binding/names.ts';
import { namespaces } from '../../api/resources.ts';
import { Controller } from '../../engine/controller.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import { backoffMs } from '../../kit/backoff.ts';
import { describe } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import type { CallOptions, Client } from '../../kube/client.ts';
import { isAlreadyExists, isForbidden, isObjectNotFound } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { Log } from '../../observe/log.ts';
import type { BindingDeps } from '../deps.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { NamespaceView } from '../stores/consumer-stores.ts';
import type { ServiceNamespaceView } from '../stores/provider-stores.ts';
import { consumerResource, syncVersion } from '../sync/consumer-objects.ts';

/**
 * Creates the consumer namespaces that the provider requests. For any other namespace that is gone,
 * deletes its APIServiceNamespace once the provider has no copies left.
 */
export function namespaceController(
  session: ProviderSession,
  deps: BindingDeps,
  mayCreate: (namespace: string) => boolean = () => true,
): Controller {
  const name = `namespaces/${session.id}`;
  const { clusterNamespace } = session;
  const { serviceNamespaces } = session.stores;
  return new Controller({
    name,
    sources: [
      fromSubscription('namespace', deps.stores.namespaces, ({ key }) =>
        serviceNamespaces.get(`${clusterNamespace}/${key}`) ? [key] : [],
      ),
      fromSubscription('serviceNamespace', serviceNamespaces, (event) => {
        const view = 'now' in event ? event.now : event.before;
        return view.namespace === clusterNamespace ? [view.name] : [];
      }),
    ],
    reconciler: new NamespaceReconciler({
      session,
      namespaces: deps.stores.namespaces,
      client: deps.client,
      mayCreate,
      log: deps.log.child({ provider: session.id }),
    }),
    workers: 4,
    clock: deps.clock,
    log: deps.log,
    // Without the session id, so that the series continue after a rotation of credentials.
    metrics: deps.metrics.controller('namespaces'),
  });
}

interface NamespaceReconcilerOptions {
  readonly session: ProviderSession;
  readonly namespaces: Store<NamespaceView>;
  readonly client: Client;
  readonly mayCreate: (namespace: string) => boolean;
  readonly log: Log;
}

const backoffs = {
  /** Short: a provider may grant permissions only when it sees the first object that needs them. */
  denied: { baseMs: 250, capMs: 5_000 },
  /** While a service namespace still has copies. */
  leftovers: { baseMs: 5_000, capMs: 5 * 60_000 },
};
type WaitReason = keyof typeof backoffs;

/**
 * For an APIServiceNamespace (the key is its name) without a consumer namespace: creates that if
 * the owner label is `provider`, otherwise deletes the APIServiceNamespace once no copies are left.
 */
class NamespaceReconciler implements Reconciler {
  readonly #options: NamespaceReconcilerOptions;
  /** By consumer namespace. `count`: consecutive waits for this reason. */
  readonly #waits = new Map<string, { readonly reason: WaitReason; readonly count: number }>();

  constructor(options: NamespaceReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    try {
      const result = await this.#reconcile(name, signal);
      if (result.kind === 'done') this.#waits.delete(name);
      return result;
    } catch (error) {
      if (signal.aborted || !isForbidden(error)) throw error;
      if (this.#waits.get(name)?.reason !== 'denied')
        this.#options.log.warn(
          'a call for a namespace was denied; grant the permission to the user in the field error, or, if it is a user of the provider, ask the provider for it; the server retries',
          { namespace: name, error: describe(error) },
        );
      return this.#wait(name, 'denied');
    }
  }

  #wait(name: string, reason: WaitReason): Result {
    const before = this.#waits.get(name);
    const attempt = before?.reason === reason ? before.count : 0;
    this.#waits.set(name, { reason, count: attempt + 1 });
    return after(backoffMs({ ...backoffs[reason], attempt, jitter: 'none' }));
  }

  #reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { session, namespaces: consumerNamespaces } = this.#options;
    const view = session.stores.serviceNamespaces.get(`${session.clusterNamespace}/${name}`);
    // A consumer namespace stays when its APIServiceNamespace is deleted.
    if (!view || view.deleting || consumerNamespaces.get(name)) return Promise.resolve(done);
    return view.owner === 'provider' ? this.#create(name, signal) : this.#deleteServiceNamespace(view, signal);
  }

  async #create(name: string, signal: AbortSignal): Promise<Result> {
    const { mayCreate, client, log } = this.#options;
    if (!mayCreate(name)) {
      log.warn(
        'the provider requests a namespace that is not in --bindable-namespaces; add it to the flag to allow it',
        { namespace: name },
      );
      return done;
    }
    try {
      const metadata = { name, labels: { [ownerLabel]: 'provider' } };
      await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }, { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    return done;
  }

  /** Live, because the provider then deletes the service namespace with all its objects. */
  async #deleteServiceNamespace(view: ServiceNamespaceView, signal: AbortSignal): Promise<Result> {
    const { client, session, log } = this.#options;
    if (await namespaceExists(client, view.name, signal)) return done;
    if (view.serviceNamespace !== undefined) {
      const copies = await leftoverCopies(session, view.serviceNamespace, { signal });
      if (copies > 0) {
        log.info(
          'a namespace was deleted, but the provider still has copies of its objects; the server checks again; if they stay, ask the provider to delete them',
          { namespace: view.name, serviceNamespace: view.serviceNamespace, copies },
        );
        return this.#wait(view.name, 'leftovers');
      }
    }
    const { namespace, name, uid } = view;
    await session.client.delete(apiServiceNamespaces, { namespace, name }, { uid, signal });
    return done;
  }
}

const askProvider = 'ask the provider to correct it if this does not end';

/** Live, because the store may not show a new namespace yet. */
async function namespaceExists(client: Client, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.get(namespaces, { name }, { signal });
    return true;
  } catch (error) {
    if (isObjectNotFound(error)) return false;
    throw error;
  }
}

/** From live lists. Rejects if an export or its schema is not valid. */
async function leftoverCopies(
  session: ProviderSession,
  serviceNamespace: string,
  options: CallOptions,
): Promise<number> {
  const { client, clusterNamespace, stores } = session;
  const { items: exports } = await client.list(apiServiceExports, { ...options, namespace: clusterNamespace });
  let copies = 0;
  for (const { metadata } of exports) {
    const exported = stores.exports.get(`${clusterNamespace}/${metadata.name}`);
    if (!exported || exported.specProblem !== undefined)
      throw new Error(
        `cannot count the copies: APIServiceExport ${metadata.name} is not valid, or not received yet; ${askProvider}`,
      );
    for (const resource of exported.resources) {
      const schema = stores.schemas.get(`${clusterNamespace}/${boundSchemaName(resource)}`);
      if (!schema)
        throw new Error(
          `cannot count the copies: BoundSchema ${boundSchemaName(resource)} is not valid, or not received yet; ${askProvider}`,
        );
      if (schema.scope !== 'Namespaced') continue;
      const version = syncVersion(schema, exported) ?? schema.versions.find(({ served }) => served);
      if (!version) continue;
      const listOptions = { ...options, namespace: serviceNamespace };
      const { items } = await client.list(consumerResource(schema, version.name), listOptions);
      copies += items.filter(
        ({ metadata }) => own(metadata.annotations, clusterNamespaceAnnotation) === clusterNamespace,
      ).length;
    }
  }
  return copies;
}
