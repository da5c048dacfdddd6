import { kubeconfigKey } from '../../api/binding/names.ts';
import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { keyOf, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { done, type Reconciler, type Result, retry } from '../../engine/result.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { bySecret, type ConsumerStores } from '../stores/consumer-stores.ts';
import { candidateProblem } from './candidate-problem.ts';
import { type Kubeconfig, type KubeconfigProblem, readKubeconfigSecret } from './kubeconfig.ts';
import type { OpenSession } from './open-session.ts';
import { type SecretView, type SecretWatches, secretView } from './secret-watches.ts';
import type { SessionPool } from './session-pool.ts';
import type { SessionRegistry } from './session-registry.ts';

export interface SessionReconcilerDeps {
  readonly stores: Pick<ConsumerStores, 'bindings' | 'bundles'>;
  /** Used for reads only. */
  readonly client: Client;
  readonly watches: SecretWatches;
  readonly pool: SessionPool;
  readonly registry: SessionRegistry;
  readonly clock: Clock;
}

/** A verified new session may take this long to sync before it replaces the old one. */
const maxSyncWaitMs = 10_000;

/**
 * Opens, shares, replaces, and releases sessions. The key is `namespace/name` of a Secret. Retries
 * a forbidden read or a rejected kubeconfig; a missing or malformed one waits for an event.
 */
export class SessionReconciler implements Reconciler {
  readonly #deps: SessionReconcilerDeps;

  constructor(deps: SessionReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(secret: string, signal: AbortSignal): Promise<Result> {
    const { watches, registry, pool } = this.#deps;
    const namedKeys = this.#namedKeys(secret);
    const keys = watches.labeled.get(secret) ? new Set([...namedKeys, kubeconfigKey]) : namedKeys;
    for (const session of registry.forget(secret, (key) => !keys.has(key))) pool.release(session);
    if (namedKeys.size > 0) watches.watch(secret);
    else watches.drop(secret);
    if (keys.size === 0) return done;
    const { namespace = '', name } = nameOf(secret);
    const refs = [...keys].map((key) => ({ namespace, name, key }));
    const found = watches.get(secret);
    const secretRead = found === 'pending' ? await this.#read(secret, signal) : { secret: found };
    signal.throwIfAborted();
    if ('problem' in secretRead) {
      for (const ref of refs) registry.fail(ref, secretRead.problem);
      return retry(secretRead.problem.message);
    }
    let result: Result = done;
    for (const ref of refs) {
      const refResult = await this.#serveRef(ref, secretRead.secret, signal);
      if (refResult.kind !== 'done') result = refResult;
    }
    return result;
  }

  /** This replica is no longer the leader. */
  suspend(): void {
    const { watches, registry, pool } = this.#deps;
    registry.forgetAll();
    pool.closeAll();
    watches.dropAll();
  }

  #namedKeys(secret: string): Set<string> {
    const { bindings, bundles } = this.#deps.stores;
    const users = [...bindings.byIndex(bySecret, secret), ...bundles.byIndex(bySecret, secret)];
    return new Set(users.map(({ secretRef }) => secretRef.key));
  }

  /** Live: a watch may never sync, and a read tells why. */
  async #read(
    secret: string,
    signal: AbortSignal,
  ): Promise<{ readonly secret: SecretView | undefined } | { readonly problem: KubeconfigProblem }> {
    try {
      const found = await findObject(this.#deps.client, secrets, nameOf(secret), { signal });
      return { secret: found && secretView(found) };
    } catch (error) {
      if (!isForbidden(error)) throw error;
      const { namespace } = nameOf(secret);
      const message = `Secret ${secret} cannot be read: ${describe(error)}; the konnector needs permission to get, list, and watch it: add namespace ${namespace} to the chart value binding.secretNamespaces`;
      return { problem: { reason: 'KubeconfigSecretInvalid', message } };
    }
  }

  async #serveRef(ref: SecretKeyRef, secret: SecretView | undefined, signal: AbortSignal): Promise<Result> {
    const { registry, pool } = this.#deps;
    const read = await readKubeconfigSecret(ref, secret);
    signal.throwIfAborted();
    if ('problem' in read) {
      registry.fail(ref, read.problem);
      return done;
    }
    const serving = registry.serving(ref);
    if (serving && serving.id !== read.kubeconfig.id) return this.#replace(ref, serving, read.kubeconfig, signal);
    const session = serving ?? pool.acquire(read.kubeconfig);
    registry.serve(ref, session);
    session.start();
    return done;
  }

  /** Verifies the new session first. If that fails, the old one keeps serving. */
  async #replace(
    ref: SecretKeyRef,
    serving: OpenSession,
    kubeconfig: Kubeconfig,
    signal: AbortSignal,
  ): Promise<Result> {
    const { registry, pool } = this.#deps;
    const session = pool.acquire(kubeconfig);
    let unused = session;
    try {
      const problem = await candidateProblem(session, serving, signal);
      if (problem !== undefined) {
        const message = `Secret ${keyOf(ref)}: its new kubeconfig is not used, and the previous one stays in use: ${problem}`;
        registry.fail(ref, { reason: 'KubeconfigSecretInvalid', message });
        return retry(problem);
      }
      await this.#waitForSync(session, signal);
      // Two sets of controllers would undo each other's writes.
      if (pool.isOnlyReference(serving)) await serving.stop();
      signal.throwIfAborted();
      registry.serve(ref, session);
      unused = serving;
    } finally {
      pool.release(unused);
      // Also after an abort: each session that the registry lists must run.
      for (const candidate of [session, serving]) if (registry.list().has(candidate)) candidate.start();
    }
    return done;
  }

  /** At most `maxSyncWaitMs`. Rejects only if `signal` aborts. */
  async #waitForSync(session: OpenSession, signal: AbortSignal): Promise<void> {
    const waitEnded = new AbortController();
    const limit = sleep(this.#deps.clock, maxSyncWaitMs, waitEnded.signal).catch(() => undefined);
    await Promise.race([session.whenSynced(signal).catch(() => undefined), limit]);
    waitEnded.abort();
    signal.throwIfAborted();
  }
}
