import { apiServiceNamespaces, ownerLabel } from '../../api/binding/names.ts';
import { namespaces } from '../../api/resources.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isAlreadyExists } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { Log } from '../../observe/log.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { NamespaceView, ServiceNamespaceView } from '../stores/views.ts';
import { leftoverCopies } from './leftover-copies.ts';

export interface NamespaceReconcilerOptions {
  readonly session: ProviderSession;
  readonly namespaces: Store<NamespaceView>;
  /** Writes to the consumer. */
  readonly client: Client;
  /** Whether the provider may have a namespace of this name made in the consumer. */
  readonly allowed: (namespace: string) => boolean;
  readonly log: Log;
}

/** A provider gives rights while we ask; it is asked again after at most this long, milliseconds. */
const REFUSED_CAP_MS = 5_000;
/** Between looks at a namespace of the provider that still holds copies: the first, and the most, since some are left for good. */
const LEFTOVERS_MS = 5_000;
const LEFTOVERS_CAP_MS = 5 * 60_000;

/** Keeps the existence of one consumer namespace and of its APIServiceNamespace together: whoever made it first decides. */
export class NamespaceReconciler implements Reconciler {
  readonly #options: NamespaceReconcilerOptions;
  /** By name: when to look the next time at one that still holds copies, milliseconds. */
  readonly #leftovers = new Map<string, number>();
  /** By name: refusals in a row. */
  readonly #refused = new Map<string, number>();

  constructor(options: NamespaceReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    try {
      const result = await this.#reconcile(name, signal);
      this.#refused.delete(name);
      return result;
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError) || error.code !== 403) throw error;
      const times = this.#refused.get(name) ?? 0;
      this.#refused.set(name, times + 1);
      const { log } = this.#options;
      // What lasts is told once.
      log[times === 0 ? 'warn' : 'debug']('a namespace is refused', { namespace: name, message: error.message });
      return after(Math.min(REFUSED_CAP_MS, 250 * 2 ** times));
    }
  }

  #reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { session, namespaces: known } = this.#options;
    const asked = session.stores.serviceNamespaces.get(`${session.clusterNamespace}/${name}`);
    // Without it nothing ties the consumer's namespace to the provider: it stays.
    if (!asked || asked.deleting || known.get(name)) {
      this.#leftovers.delete(name);
      return Promise.resolve(done);
    }
    return asked.owner === 'provider' ? this.#create(name, signal) : this.#giveUp(asked, signal);
  }

  async #create(name: string, signal: AbortSignal): Promise<Result> {
    const { allowed, client, log } = this.#options;
    if (!allowed(name)) {
      log.warn('the provider asks for a namespace that it may not have', { namespace: name });
      return done;
    }
    try {
      const metadata = { name, labels: { [ownerLabel]: 'provider' } };
      await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }, { signal });
    } catch (error) {
      // There is one, whoever made it.
      if (!isAlreadyExists(error)) throw error;
    }
    return done;
  }

  /** With it the provider's namespace goes and all that is in it, so that it may not be a mistake. */
  async #giveUp(asked: ServiceNamespaceView, signal: AbortSignal): Promise<Result> {
    const { client, session, log } = this.#options;
    if (await exists(client, asked.name, signal)) return done;
    if (asked.serviceNamespace !== undefined) {
      const copies = await leftoverCopies(session, asked.serviceNamespace, { signal });
      if (copies > 0) {
        const waitMs = this.#leftovers.get(asked.name) ?? LEFTOVERS_MS;
        this.#leftovers.set(asked.name, Math.min(waitMs * 2, LEFTOVERS_CAP_MS));
        log.info('a namespace is gone, its copies in the provider are not yet', { namespace: asked.name, copies });
        return after(waitMs);
      }
    }
    const { namespace, name, uid } = asked;
    await session.client.delete(apiServiceNamespaces, { namespace, name }, { uid, signal });
    return done;
  }
}

/** A live read: the store may not show a namespace that was made a moment ago. */
async function exists(client: Client, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.get(namespaces, { name }, { signal });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404 && error.reason === 'NotFound') return false;
    throw error;
  }
}
