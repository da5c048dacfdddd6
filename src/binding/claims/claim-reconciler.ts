import { nameOf, type Resource } from '../../api/object.ts';
import { after, done, notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { ApiError, TransportError } from '../../kube/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Store } from '../../kube/store.ts';
import type { NamespaceView } from '../stores/views.ts';
import type { DeleteBreaker } from '../sync/delete-breaker.ts';
import type { Problem, Problems } from '../sync/problems.ts';
import type { ClaimWriter } from './claim-writer.ts';
import { type ClaimedView, viewClaimed } from './claimed-view.ts';
import type { ClaimFacts, ClaimPlan } from './plan.ts';
import type { ProviderObjects } from './provider-objects.ts';
import type { SelectedObjects } from './selected-objects.ts';

export interface ClaimReconcilerOptions {
  readonly resource: Resource;
  readonly consumer: SelectedObjects;
  readonly provider: ProviderObjects;
  readonly namespaces: Store<NamespaceView>;
  readonly writer: ClaimWriter;
  readonly breaker: DeleteBreaker;
  /** What is to be done about a key; undefined while nothing may be done yet. */
  readonly plan: ((facts: ClaimFacts) => ClaimPlan) | undefined;
  /** In words, by which part of a claim an object is selected, seen under its consumer namespace; undefined when by none. */
  readonly why: (object: ClaimedView, namespace: string) => string | undefined;
  /** Whether the provider may put something of that name into a namespace of the consumer. */
  readonly isInvited: (namespace: string, name: string) => boolean;
  readonly providerIdentity: () => string | undefined;
  readonly hasRival: () => boolean;
  /** Makes the APIServiceNamespace for a namespace of the consumer, if there is none. */
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  readonly problems: Problems;
  readonly clock: Clock;
  readonly events: EventRecorder;
  /** Looks at a key again at once. */
  readonly wake: (key: string) => void;
  /** Deletes are held back, or no longer. */
  readonly onHeld: () => void;
  /** There was nothing to write for the key. */
  readonly onSettled: (key: string) => void;
}

/** A provider gives rights while we ask; it is asked again after at most this long, milliseconds. */
const refusedCapMs = 5000;
/** So long a refusal passes for rights that are on their way, milliseconds. */
const patienceMs = 2000;
/** There is one in every cluster for as long as the cluster lives. */
const clusterMark = 'kube-system';
/** A provider that is there every other second must not wake everything each time. */
const wakeMs = 1000;

/**
 * Keeps one claimed object and its copy in step. Stores say when there is something to do; what is done is decided once more on
 * live reads of both sides, so that nothing is overwritten or deleted on the word of a store.
 */
export class ClaimReconciler implements Reconciler {
  readonly #options: ClaimReconcilerOptions;
  /** Refusals in a row, and when the first was (monotonic), by key. */
  readonly #refused = new Map<string, { readonly times: number; readonly sinceMs: number }>();
  /** Keys whose last calls got no answer. */
  readonly #cutOff = new Set<string>();
  #held = 0;
  #wokenAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ClaimReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    try {
      return await this.#reconcile(key, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      if (isUnreachable(error)) this.#cutOff.add(key);
      else if (error instanceof ApiError && error.code === 403) return this.#onRefused(key, error.message);
      else if (isInvalid(error)) this.#tell(key, { rank: 'failing', message: `it was refused: ${error.message}` });
      throw error;
    } finally {
      this.#noteHeld();
    }
  }

  /** Forgets what it knows of earlier runs. */
  clear(): void {
    this.#refused.clear();
    this.#cutOff.clear();
  }

  /** How many of the keys there would be something to delete for. */
  deletable(keys: Iterable<string>, plan: (facts: ClaimFacts) => ClaimPlan): number {
    const { consumer, provider } = this.#options;
    let count = 0;
    for (const key of keys) {
      const { namespace, name } = placeOf(key);
      if (plan(this.#facts(key, consumer.get(key), provider.get(namespace, name))).actions.length > 0) count++;
    }
    return count;
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { plan: decide, consumer, provider, writer, requestNamespace } = this.#options;
    if (!decide) return notReady('the end of what is bound');
    const { namespace, name } = placeOf(key);
    const service = provider.serviceNamespace(namespace);
    if (service.kind === 'ready' && !provider.isKnown(namespace)) return notReady(`objects of ${service.name}`);
    const seen = decide(this.#facts(key, consumer.get(key), provider.get(namespace, name)));
    if (seen.actions.length === 0) return this.#settle(key, seen);
    if (service.kind !== 'ready') {
      await requestNamespace(namespace, signal);
      return this.#settle(key, seen);
    }
    const places = { consumer: { namespace, name }, provider: { namespace: service.name, name } };
    const pair = await writer.read(key, places, signal);
    const { consumer: ours, provider: theirs } = pair.objects;
    const facts = this.#facts(key, ours && viewClaimed(ours), theirs && viewClaimed(theirs));
    const plan = decide(facts);
    const held = this.#holdBack(key, plan);
    if (held) return held;
    const waitMs = await writer.perform(plan.actions, { ...pair, why: this.#whyOf(facts) }, signal);
    this.#reached(key);
    if (waitMs === Number.POSITIVE_INFINITY) {
      this.#tell(key, {
        rank: 'partial',
        message: 'what is written to its copy is accepted and changed by a webhook there',
      });
      return done;
    }
    if (waitMs > 0) return after(waitMs);
    if (isInferredDelete(plan)) this.#options.breaker.deleted(key, this.#options.clock.monotonic());
    return this.#settle(key, plan);
  }

  /** Deletes that are only inferred: not many at a time. */
  #holdBack(key: string, plan: ClaimPlan): Result | undefined {
    const { breaker, clock } = this.#options;
    if (!isInferredDelete(plan)) return undefined;
    const waitMs = breaker.ask(key, clock.monotonic());
    if (waitMs === 0) return undefined;
    const forever = waitMs === Number.POSITIVE_INFINITY;
    return forever ? notReady('a decision about many copies without an original') : after(waitMs);
  }

  #noteHeld(): void {
    const { breaker, onHeld } = this.#options;
    if (breaker.held === this.#held) return;
    this.#held = breaker.held;
    onHeld();
  }

  #settle(key: string, plan: ClaimPlan): Result {
    const { consumer, provider, breaker, onSettled } = this.#options;
    const { namespace, name } = placeOf(key);
    const { problem, waitsFor, againInMs, actions } = plan;
    this.#refused.delete(key);
    this.#tell(key, problem === undefined ? undefined : { rank: 'refused', message: problem });
    if (!isInferredDelete(plan)) breaker.dropped(key);
    if (actions.length === 0) onSettled(key);
    consumer.departures.keepOnly(key, provider.get(namespace, name)?.marks.consumerUid);
    provider.departures.keepOnly(key, consumer.get(key)?.marks.providerUid);
    if (againInMs !== undefined) return after(againInMs);
    return waitsFor === undefined ? done : notReady(waitsFor);
  }

  #onRefused(key: string, message: string): Result {
    const nowMs = this.#options.clock.monotonic();
    const { times, sinceMs } = this.#refused.get(key) ?? { times: 0, sinceMs: nowMs };
    this.#refused.set(key, { times: times + 1, sinceMs });
    if (nowMs - sinceMs >= patienceMs)
      this.#tell(key, { rank: 'forbidden', message: `it is not permitted: ${message}` });
    return after(Math.min(refusedCapMs, 250 * 2 ** times));
  }

  /** After an outage the first key that gets through brings all the others back. */
  #reached(key: string): void {
    const { clock, wake } = this.#options;
    this.#cutOff.delete(key);
    const nowMs = clock.monotonic();
    if (this.#cutOff.size === 0 || nowMs - this.#wokenAtMs < wakeMs) return;
    this.#wokenAtMs = nowMs;
    const all = [...this.#cutOff];
    this.#cutOff.clear();
    for (const other of all) wake(other);
  }

  #facts(key: string, consumer: ClaimedView | undefined, provider: ClaimedView | undefined): ClaimFacts {
    const { namespaces, why, isInvited, providerIdentity, hasRival } = this.#options;
    const { namespace, name } = placeOf(key);
    const home = namespaces.get(namespace);
    return {
      consumer,
      provider,
      claimed: {
        consumer: consumer !== undefined && why(consumer, namespace) !== undefined,
        provider: provider !== undefined && why(provider, namespace) !== undefined,
      },
      consumerNamespace: namespace,
      consumerCluster: namespaces.get(clusterMark)?.uid,
      hasRival: hasRival(),
      namespaceStays: home !== undefined && !home.deleting,
      isInvited: isInvited(namespace, name),
      serviceNamespace: this.#options.provider.serviceNamespace(namespace),
      providerIdentity: providerIdentity(),
      gone: {
        consumer: this.#options.consumer.departures.get(key),
        provider: this.#options.provider.departures.get(key),
      },
    };
  }

  #whyOf({ consumer, provider, consumerNamespace }: ClaimFacts): string | undefined {
    const { why } = this.#options;
    return (consumer && why(consumer, consumerNamespace)) ?? (provider && why(provider, consumerNamespace));
  }

  #tell(key: string, problem: Problem | undefined): void {
    const { problems, consumer, events, resource } = this.#options;
    if (!problem) {
      problems.clear(key);
      return;
    }
    const object = consumer.get(key);
    if (!problems.set(key, problem) || !object) return;
    events.record({
      regarding: regarding(resource, object),
      type: 'Warning',
      reason: 'NotSynced',
      action: 'Sync',
      note: problem.message,
    });
  }
}

/** Keys of claimed objects always have a namespace. */
function placeOf(key: string): { readonly namespace: string; readonly name: string } {
  const { namespace = '', name } = nameOf(key);
  return { namespace, name };
}

const isInferredDelete = ({ actions }: ClaimPlan): boolean =>
  actions.some((action) => action.kind === 'delete' && action.reason === 'inferred');

const isUnreachable = (error: unknown): boolean =>
  error instanceof TransportError || (error instanceof ApiError && (error.code >= 500 || error.code === 429));

/** The object must change before it can succeed. */
const isInvalid = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.code === 400 || error.code === 413 || error.code === 422);
