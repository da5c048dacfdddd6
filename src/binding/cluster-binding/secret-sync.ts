import { bindConditions, keepKubeconfigAnnotation } from '../../api/binding/names.ts';
import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { keyOf } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { secrets } from '../../api/resources.ts';
import { quote } from '../../kit/errors.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { type BindConditionUpdate, conditionFalse, conditionTrue } from '../conditions.ts';
import { candidateProblem } from '../sessions/candidate-problem.ts';
import { type Kubeconfig, readKubeconfig } from '../sessions/kubeconfig.ts';
import type { OpenSession } from '../sessions/open-session.ts';
import { dataOf, type SecretView, secretView, textOf } from '../sessions/secret-watches.ts';

export interface SecretSyncDeps {
  readonly session: OpenSession;
  readonly refs: () => readonly SecretKeyRef[];
  /** By `namespace/name`; `pending` while the server does not know whether it exists. */
  readonly getSecret: (secret: string) => SecretView | undefined | 'pending';
  /** Of the consumer. */
  readonly client: Client;
  readonly connect: (credentials: Credentials) => Cluster;
  readonly events: EventRecorder;
}

/** Copies the provider's kubeconfig to the consumer's Secrets, and creates those. */
export class SecretSync {
  readonly #deps: SecretSyncDeps;

  constructor(deps: SecretSyncDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the condition `SecretValid`. Writes the keys in `refs`, with a kubeconfig in use or
   * verified, but no Secret with the annotation `keep-kubeconfig`. Rejects if a call to the
   * consumer fails.
   */
  async run(
    provider: SecretView | undefined,
    name: string,
    key: string,
    signal: AbortSignal,
  ): Promise<BindConditionUpdate> {
    if (!provider)
      return notFound(
        `Secret ${name} not found in the provider; ask the provider to create it with this cluster's kubeconfig`,
      );
    const text = textOf(provider, key);
    if (text === undefined) return invalid(`Secret ${name} has no key ${quote(key)}; ask the provider to add it`);
    const stale: SecretKeyRef[] = [];
    for (const ref of this.#deps.refs()) if (isStale(await this.#getSecret(ref, signal), ref, text)) stale.push(ref);
    if (stale.length > 0) {
      const problem = await this.#kubeconfigProblem(text, `Secret ${name}`, signal);
      if (problem !== undefined) return invalid(problem);
      for (const ref of stale) await this.#write(ref, text, signal);
    }
    return conditionTrue(bindConditions.secretValid);
  }

  /** Live while its watch has not synced: without permission to list, it never syncs. */
  async #getSecret(ref: SecretKeyRef, signal: AbortSignal): Promise<SecretView | undefined> {
    const { namespace, name } = ref;
    const watched = this.#deps.getSecret(keyOf(ref));
    if (watched !== 'pending') return watched;
    const found = await findObject(this.#deps.client, secrets, { namespace, name }, { signal });
    return found && secretView(found);
  }

  /** Why a kubeconfig must not replace the one in use; verifies it at the provider. */
  async #kubeconfigProblem(text: string, where: string, signal: AbortSignal): Promise<string | undefined> {
    const { session, connect } = this.#deps;
    const read = await readKubeconfig(text, where);
    signal.throwIfAborted();
    if ('problem' in read) return read.problem.message;
    const { kubeconfig } = read;
    if (kubeconfig.id === session.id) return undefined;
    const { server } = kubeconfig.credentials;
    if (endpointOf(server) !== endpointOf(session.server)) {
      return (
        `${where} names server ${server}, but the kubeconfig in use names ${session.server}; a provider may not change the server; ` +
        `if the provider has moved, put its kubeconfig into the consumer's Secret by hand`
      );
    }
    const problem = await this.#candidateProblem(kubeconfig, connect, signal);
    return problem && `${where} is not copied: ${problem}`;
  }

  async #candidateProblem(
    { credentials, namespace }: Kubeconfig,
    connect: SecretSyncDeps['connect'],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const cluster = connect(credentials);
    try {
      const candidate = { cluster, server: credentials.server, clusterNamespace: namespace };
      return await candidateProblem(candidate, this.#deps.session, signal);
    } finally {
      await cluster.close();
    }
  }

  async #write(ref: SecretKeyRef, text: string, signal: AbortSignal): Promise<void> {
    const { client, events } = this.#deps;
    const { namespace, name } = ref;
    const secret = await this.#getSecret(ref, signal);
    signal.throwIfAborted();
    const data = { [ref.key]: dataOf(text) };
    if (secret) {
      const { uid, resourceVersion } = secret;
      await client.mergePatch(secrets, ref, { metadata: { uid, resourceVersion }, data }, { signal });
    } else {
      // Keep the Secret out of claims when no binding names it any more.
      const metadata = { namespace, name, labels: { ...ownLabels } };
      await client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }, { signal });
    }
    events.record({
      regarding: regarding(secrets, { namespace, name, uid: secret?.uid }),
      type: 'Normal',
      reason: 'KubeconfigUpdated',
      action: 'SyncSecret',
      note: `the server copied the provider's kubeconfig to key ${quote(ref.key)}`,
    });
  }
}

const isStale = (secret: SecretView | undefined, { key }: SecretKeyRef, text: string): boolean =>
  !secret || (!isPinned(secret) && textOf(secret, key) !== text);

const isPinned = ({ annotations }: SecretView): boolean => annotations[keepKubeconfigAnnotation] === 'true';

/** Another port or path of the same host may be another server. */
function endpointOf(server: string): string {
  const { origin, pathname } = new URL(server);
  return origin + pathname.replace(/\/+$/, '');
}

const notFound = (message: string): BindConditionUpdate =>
  conditionFalse(bindConditions.secretValid, 'Warning', 'ProviderSecretNotFound', message);
const invalid = (message: string): BindConditionUpdate =>
  conditionFalse(bindConditions.secretValid, 'Warning', 'ProviderSecretInvalid', message);
