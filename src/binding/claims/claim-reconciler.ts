import { apiVersionOf, nameOf, type Resource } from '../../api/object.ts';
import { after, done, notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { ApiError } from '../../kube/errors.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Store } from '../../kube/store.ts';
import type { NamespaceView } from '../stores/views.ts';
import type { ClaimWriter } from './claim-writer.ts';
import { type ClaimedView, viewClaimed } from './claimed-view.ts';
import type { ConsumerObjects } from './consumer-objects.ts';
import { type ClaimFacts, type ClaimPlan, planClaim } from './plan.ts';
import type { ProblemList } from './problem-list.ts';
import type { ProviderObjects } from './provider-objects.ts';

export interface ClaimReconcilerOptions {
  readonly resource: Resource;
  readonly consumer: ConsumerObjects;
  readonly provider: ProviderObjects;
  readonly namespaces: Store<NamespaceView>;
  readonly writer: ClaimWriter;
  /** Whether a claim selects an object, seen under its consumer namespace. */
  readonly isClaimed: (object: ClaimedView, namespace: string) => boolean;
  readonly providerIdentity: () => string | undefined;
  /** Makes the APIServiceNamespace for a namespace of the consumer, if there is none. */
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  readonly problems: ProblemList;
  readonly clock: Clock;
  readonly events: EventRecorder;
  /** There was nothing to write for the key. */
  readonly onSettled: (key: string) => void;
}

/** A provider gives rights while we ask; it is asked again after at most this long, milliseconds. */
const refusedCapMs = 5000;
/** So long a refusal passes for rights that are on their way, milliseconds. */
const patienceMs = 2000;

/**
 * Keeps one claimed object and its copy in step. Stores say when there is something to do; what is done is decided once more on
 * live reads of both sides, so that nothing is overwritten or deleted on the word of a store.
 */
export class ClaimReconciler implements Reconciler {
  readonly #options: ClaimReconcilerOptions;
  /** Refusals in a row, and when the first was (monotonic), by key. */
  readonly #refused = new Map<string, { readonly times: number; readonly sinceMs: number }>();

  constructor(options: ClaimReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    try {
      const result = await this.#reconcile(key, signal);
      this.#refused.delete(key);
      return result;
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError)) throw error;
      if (isInvalid(error)) this.#tell(key, `${this.#what(key)} cannot be synced: ${error.message}`);
      if (error.code !== 403) throw error;
      return this.#onRefused(key, error.message);
    }
  }

  #onRefused(key: string, message: string): Result {
    const nowMs = this.#options.clock.monotonic();
    const { times, sinceMs } = this.#refused.get(key) ?? { times: 0, sinceMs: nowMs };
    this.#refused.set(key, { times: times + 1, sinceMs });
    if (nowMs - sinceMs >= patienceMs) this.#tell(key, `${this.#what(key)} cannot be synced: ${message}`);
    return after(Math.min(refusedCapMs, 250 * 2 ** times));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { consumer, provider, writer, requestNamespace } = this.#options;
    const { namespace, name } = placeOf(key);
    const service = provider.serviceNamespace(namespace);
    if (service.kind === 'ready' && !provider.isKnown(namespace)) return notReady(`objects of ${service.name}`);
    const seen = planClaim(this.#facts(key, consumer.get(key), provider.get(namespace, name)));
    if (seen.actions.length === 0) return this.#settle(key, seen);
    if (service.kind !== 'ready') {
      await requestNamespace(namespace, signal);
      return this.#settle(key, seen);
    }
    const places = { consumer: { namespace, name }, provider: { namespace: service.name, name } };
    const pair = await writer.read(key, places, signal);
    const [ours, theirs] = [pair.objects.consumer, pair.objects.provider];
    const plan = planClaim(this.#facts(key, ours && viewClaimed(ours), theirs && viewClaimed(theirs)));
    const waitMs = await writer.perform(plan.actions, pair, signal);
    return waitMs > 0 ? after(waitMs) : this.#settle(key, plan);
  }

  #settle(key: string, { problem, waitsFor, actions }: ClaimPlan): Result {
    const { consumer, provider, writer, onSettled } = this.#options;
    const { namespace, name } = placeOf(key);
    this.#tell(key, problem);
    if (actions.length === 0) onSettled(key);
    const [original, copy] = [consumer.get(key), provider.get(namespace, name)];
    // No copy is left that could be proved by what is gone.
    if (copy?.marks.consumerUid !== consumer.gone(key)?.uid) consumer.forgetGone(key);
    if (!original && !copy) writer.forget(key);
    return waitsFor === undefined ? done : notReady(waitsFor);
  }

  #facts(key: string, consumer: ClaimedView | undefined, provider: ClaimedView | undefined): ClaimFacts {
    const { namespaces, isClaimed, providerIdentity } = this.#options;
    const { namespace } = placeOf(key);
    const home = namespaces.get(namespace);
    return {
      what: this.#what(key),
      consumer,
      provider,
      claimed: {
        consumer: consumer !== undefined && isClaimed(consumer, namespace),
        provider: provider !== undefined && isClaimed(provider, namespace),
      },
      consumerNamespace: namespace,
      namespaceStays: home !== undefined && !home.deleting,
      serviceNamespace: this.#options.provider.serviceNamespace(namespace),
      providerIdentity: providerIdentity(),
      gone: this.#options.consumer.gone(key),
    };
  }

  #tell(key: string, problem: string | undefined): void {
    const { problems, consumer, events, resource } = this.#options;
    const isNews = problems.set(key, problem);
    const object = consumer.get(key);
    if (!isNews || problem === undefined || !object) return;
    const { namespace, name, uid } = object;
    events.record({
      regarding: { apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name, uid },
      type: 'Warning',
      reason: 'ClaimNotSynced',
      action: 'SyncClaim',
      note: problem,
    });
  }

  #what(key: string): string {
    return `${this.#options.resource.kind} ${key}`;
  }
}

/** Keys of claimed objects always have a namespace. */
function placeOf(key: string): { readonly namespace: string; readonly name: string } {
  const { namespace = '', name } = nameOf(key);
  return { namespace, name };
}

/** The object must change before it can succeed. */
const isInvalid = ({ code }: ApiError): boolean => code === 400 || code === 413 || code === 422;
