import { bindFieldManager } from '../../api/binding/names.ts';
import { nameOf, type Resource } from '../../api/object.ts';
import { notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import { answerTrustMs } from '../../kube/write-through-cache.ts';
import type { ConsumerObjects } from './consumer-objects.ts';
import type { Copies } from './copies.ts';
import type { DeleteBreaker } from './delete-breaker.ts';
import { Drift } from './drift.ts';
import type { Isolation } from './isolation.ts';
import type { Report } from './object-problems.ts';
import { copyPatch, statusPatch } from './patches.ts';
import { type Action, copyKeyOf, plan, type Situation, type Terms } from './plan.ts';
import type { Sides } from './sides.ts';
import { StatusPace } from './status-pace.ts';
import type { Latency, SyncObserver } from './sync-observer.ts';
import { isDeleting, type Projection, projectObject, type SyncedObject } from './synced-object.ts';
import type { SyncMode } from './syncer.ts';
import { Turn } from './turn.ts';
import { isGone, type Write, type Writer } from './writer.ts';

export interface SyncReconcilerOptions {
  readonly mode: SyncMode;
  readonly resources: { readonly consumer: Resource; readonly provider: Resource };
  readonly clients: { readonly consumer: Client; readonly provider: Client };
  readonly consumers: ConsumerObjects;
  readonly copies: Copies;
  readonly isolation: Isolation;
  /** Whether the store of APIServiceNamespaces has been listed, where it plays a part. */
  readonly namespacesKnown: () => boolean;
  readonly terms: () => Terms;
  readonly sides: Sides;
  readonly copyProjection: Projection;
  readonly writer: Writer;
  readonly breaker: DeleteBreaker;
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  readonly observer: SyncObserver;
  readonly latency: { readonly up: Latency; readonly down: Latency };
  /** Told after each turn what is wrong with the object; undefined when nothing is. */
  readonly report: Report;
  readonly clock: Clock;
}

/** An action, and whether a new plan is due after it: on the answer of the call, the rest of the old one may be wrong. */
type Outcome = 'go on' | 'plan again' | 'stop';

/** More than any way through takes; beyond it two answers contradict each other and only time helps. */
const MAX_PLANS = 6;
const AGAIN_MS = 100;
/** Between looks at a copy in a namespace that is not watched. */
const UNWATCHED_MS = 1_000;

/** Brings one consumer object and its copy into step: looks at both sides, plans, and makes the calls in the order of the plan. */
export class SyncReconciler implements Reconciler {
  readonly #options: SyncReconcilerOptions;
  readonly #pace = new StatusPace();
  readonly #drift = new Drift();

  constructor(options: SyncReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const turn = new Turn(key, signal);
    for (let plans = 0; ; plans++) {
      const unknown = this.#unknown(key);
      if (unknown !== undefined) return notReady(unknown);
      if (plans === MAX_PLANS) {
        turn.later(AGAIN_MS);
        break;
      }
      if (!(await this.#carryOut(turn, this.#situation(key)))) break;
    }
    return this.#settle(turn);
  }

  /** Forgets what it knows of earlier runs. */
  clear(): void {
    this.#pace.clear();
    this.#drift.clear();
  }

  /** What has to be listed before anything can be said of this key. */
  #unknown(key: string): string | undefined {
    const { mode, consumers, copies, isolation, resources, namespacesKnown } = this.#options;
    const here = consumers.state === 'listed' || (consumers.state === 'absent' && mode !== 'sync');
    if (!here) return `${resources.consumer.plural} of this cluster`;
    if (!namespacesKnown()) return 'the namespaces of the provider';
    const place = isolation.placeOf(key);
    if (place.kind === 'at' && !copies.knows(place.key)) return `${resources.provider.plural} of the provider`;
    return undefined;
  }

  #situation(key: string): Situation & { readonly copyKey: string | undefined } {
    const { mode, isolation, sides } = this.#options;
    const consumer = sides.consumers.get(key);
    const place = isolation.placeOf(key);
    const copyKey = copyKeyOf(place, consumer);
    const copy = copyKey === undefined ? undefined : sides.copies.get(copyKey);
    return {
      mode,
      key,
      consumer,
      seenDeleted: sides.deletedConsumer(key),
      place,
      copyKey,
      copy,
      copyGoing: copyKey !== undefined && copy !== undefined && sides.copies.isDeleting(copyKey, copy.uid),
      copyGone: sides.isCopyGone(copyKey),
    };
  }

  /** True when a new plan is due. */
  async #carryOut(turn: Turn, situation: Situation): Promise<boolean> {
    const actions = plan(situation, this.#options.terms());
    const deletes = actions.some((action) => action.do === 'deleteCopy' && action.inferred);
    if (!deletes) this.#options.breaker.dropped(turn.key);
    const { consumer, copy } = situation;
    if (consumer && copy && actions.every(({ do: verb }) => verb === 'mark' || verb === 'status')) {
      this.#drift.inStep(consumer);
    }
    for (const action of actions) {
      const outcome = await this.#act(turn, action, situation);
      if (outcome !== 'go on') return outcome === 'plan again';
    }
    return false;
  }

  #act(turn: Turn, action: Action, situation: Situation): Outcome | Promise<Outcome> {
    switch (action.do) {
      case 'wait':
        turn.wait(action.missing);
        return 'go on';
      case 'complain':
        turn.complain({ rank: 'refused', message: action.problem });
        return 'go on';
      case 'requestNamespace':
        return this.#requestNamespace(turn, action.namespace);
      case 'create':
        return this.#create(turn, action, situation);
      case 'update':
        return this.#update(turn, action, situation);
      case 'mark':
        return this.#mark(turn, action, situation);
      case 'status':
        return this.#status(turn, action, situation);
      case 'deleteCopy':
        return action.inferred ? this.#deleteOrphan(turn, action) : this.#deleteCopy(turn, action);
      case 'lookForCopy':
        return this.#lookForCopy(turn, action.key);
      case 'unmark':
        return this.#unmark(turn, action, situation);
    }
  }

  async #requestNamespace(turn: Turn, namespace: string): Promise<Outcome> {
    const write: Write = { action: 'requestNamespace', side: 'provider', content: namespace };
    await this.#options.writer.try(turn, write, () => this.#options.requestNamespace(namespace, turn.signal));
    turn.wait(`the provider's namespace for ${namespace}`);
    return 'stop';
  }

  async #create(turn: Turn, { key, object }: Of<'create'>, { consumer }: Situation): Promise<Outcome> {
    const { clients, copyProjection, resources, sides, writer, observer, latency } = this.#options;
    const content = `${key} ${consumer?.uid} ${consumer?.resourceVersion}`;
    const options = { signal: turn.signal, fieldManager: bindFieldManager };
    const created = await writer.try(turn, { action: 'create', side: 'provider', content }, async () => {
      // From here on nobody knows any more that there is none.
      sides.copyComing(key);
      try {
        await sides.copies.call(key, async () =>
          copyProjection(await clients.provider.create(resources.provider, object, options)),
        );
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        await this.#read(turn, key);
      }
    });
    if (!created) return 'stop';
    writer.forget(turn.key, 'create');
    this.#noteRepair(consumer);
    const seconds = latency.up.take(turn.key);
    if (seconds !== undefined) observer.up(seconds);
    return 'plan again';
  }

  async #update(turn: Turn, { key, patch }: Of<'update'>, { consumer }: Situation): Promise<Outcome> {
    const { clients, copyProjection, resources, sides, writer, observer, latency, terms } = this.#options;
    const write: Write = { action: 'update', side: 'provider', content: JSON.stringify(patch) };
    let answer: SyncedObject | undefined;
    const options = { signal: turn.signal, fieldManager: bindFieldManager };
    const updated = await writer.try(turn, write, async () => {
      answer = await sides.copies.call(key, async () =>
        copyProjection(await clients.provider.mergePatch(resources.provider, nameOf(key), patch, options)),
      );
    });
    if (!consumer || isDeleting(consumer)) return updated ? 'plan again' : 'stop';
    if (!updated || !answer) return 'go on';
    this.#noteRepair(consumer);
    const seconds = latency.up.take(turn.key);
    if (seconds !== undefined) observer.up(seconds);
    const left = copyPatch(consumer, answer, terms());
    if (left && JSON.stringify(left) === write.content) writer.futile(turn, write);
    return 'go on';
  }

  async #mark(turn: Turn, { patch }: Of<'mark'>, { consumer }: Situation): Promise<Outcome> {
    const write: Write = { action: 'mark', side: 'consumer', content: JSON.stringify(patch) };
    let gone = false;
    const marked = await this.#options.writer.try(turn, write, async () => {
      try {
        await this.#patchConsumer(turn, patch);
      } catch (error) {
        if (!isGone(error)) throw error;
        gone = true;
      }
    });
    if (!gone || !consumer) return marked ? 'go on' : 'stop';
    // It went before it could be held, and now its copy has to go as well.
    this.#options.sides.consumerGone(turn.key, consumer.uid);
    return 'plan again';
  }

  async #status(turn: Turn, { patch }: Of<'status'>, { copy }: Situation): Promise<Outcome> {
    const { clock, writer, observer, latency } = this.#options;
    const waitMs = this.#pace.waitMs(turn.key, clock.monotonic());
    if (waitMs > 0) {
      turn.later(waitMs);
      return 'go on';
    }
    const write: Write = { action: 'status', side: 'consumer', content: JSON.stringify(patch) };
    let answer: SyncedObject | undefined;
    const startMs = clock.monotonic();
    const written = await writer.try(turn, write, async () => {
      this.#pace.wrote(turn.key, startMs);
      answer = await this.#patchConsumer(turn, patch, 'status');
    });
    if (!written || !answer || !copy) return 'go on';
    const seconds = latency.down.take(turn.key);
    if (seconds !== undefined) observer.down(seconds);
    const left = statusPatch(answer, copy);
    if (left && JSON.stringify(left) === write.content) writer.futile(turn, write);
    return 'go on';
  }

  /** The copy of a consumer object that nobody saw being deleted: not many at a time, and only after asking whether it is true. */
  async #deleteOrphan(turn: Turn, action: Of<'deleteCopy'>): Promise<Outcome> {
    const { breaker, clients, clock, consumers, resources, sides, writer } = this.#options;
    if (this.#options.mode === 'sync') {
      const waitMs = breaker.ask(turn.key, clock.monotonic());
      if (waitMs === Number.POSITIVE_INFINITY) turn.wait('a decision about many copies without an object here');
      else if (waitMs > 0) turn.later(waitMs);
      if (waitMs > 0) return 'stop';
    }
    let found = false;
    const write: Write = { action: 'confirm', side: 'consumer', content: action.uid };
    const confirmed = await writer.try(turn, write, async () => {
      if (consumers.state === 'absent') return;
      try {
        await sides.consumers.call(turn.key, async () =>
          projectObject(await clients.consumer.get(resources.consumer, nameOf(turn.key), { signal: turn.signal })),
        );
        found = true;
      } catch (error) {
        if (!isGone(error)) throw error;
      }
    });
    if (!confirmed) return 'stop';
    writer.forget(turn.key, 'confirm');
    return found ? 'plan again' : this.#deleteCopy(turn, action);
  }

  async #deleteCopy(turn: Turn, { key, uid, inferred }: Of<'deleteCopy'>): Promise<Outcome> {
    const { breaker, clients, clock, copies, resources, sides, writer } = this.#options;
    const write: Write = { action: 'deleteCopy', side: 'provider', content: uid };
    let found = false;
    const deleted = await writer.try(turn, write, async () => {
      const options = { uid, signal: turn.signal };
      found = (await clients.provider.delete(resources.provider, nameOf(key), options)) !== 'absent';
    });
    if (!deleted) return 'stop';
    if (inferred) breaker.deleted(turn.key, clock.monotonic());
    if (copies.knows(key)) {
      if (found) sides.copies.deleting(key, uid);
      else sides.copies.deleted(key, uid);
    } else {
      sides.copies.forget(key);
      turn.later(UNWATCHED_MS);
    }
    turn.wait(`the end of ${key} in the provider`);
    return 'stop';
  }

  async #lookForCopy(turn: Turn, key: string): Promise<Outcome> {
    const { sides, writer } = this.#options;
    const looked = await writer.try(turn, { action: 'look', side: 'provider', content: key }, async () => {
      try {
        await this.#read(turn, key);
      } catch (error) {
        if (!isGone(error)) throw error;
        sides.copyGone(key);
      }
    });
    if (!looked) return 'stop';
    writer.forget(turn.key, 'look');
    return 'plan again';
  }

  async #unmark(turn: Turn, { patch }: Of<'unmark'>, { consumer }: Situation): Promise<Outcome> {
    const { sides, writer } = this.#options;
    const write: Write = { action: 'unmark', side: 'consumer', content: JSON.stringify(patch) };
    await writer.try(turn, write, async () => {
      try {
        await this.#patchConsumer(turn, patch);
      } catch (error) {
        if (!isGone(error) || !consumer) throw error;
        sides.consumerGone(turn.key, consumer.uid);
      }
    });
    return 'stop';
  }

  #noteRepair(consumer: SyncedObject | undefined): void {
    if (consumer && this.#drift.wasInStep(consumer)) this.#options.observer.repaired();
  }

  #patchConsumer(turn: Turn, patch: object, subresource?: string): Promise<SyncedObject> {
    const { clients, resources, sides } = this.#options;
    const options = subresource === undefined ? { signal: turn.signal } : { signal: turn.signal, subresource };
    return sides.consumers.call(turn.key, async () =>
      projectObject(await clients.consumer.mergePatch(resources.consumer, nameOf(turn.key), patch, options)),
    );
  }

  #read(turn: Turn, key: string): Promise<SyncedObject> {
    const { clients, copyProjection, resources, sides } = this.#options;
    return sides.copies.call(key, async () =>
      copyProjection(await clients.provider.get(resources.provider, nameOf(key), { signal: turn.signal })),
    );
  }

  #settle(turn: Turn): Result {
    const { latency, report, sides, writer } = this.#options;
    const { key } = turn;
    const { consumer, copy, copyKey } = this.#situation(key);
    report(key, turn.problem, consumer);
    if (turn.isSettled) {
      latency.up.take(key);
      latency.down.take(key);
    }
    if (!consumer && !copy) {
      sides.forget(key, copyKey);
      this.#pace.forget(key);
      this.#drift.forget(key);
      if (turn.isSettled) writer.forget(key);
    } else if (sides.consumers.isAhead(key) || (copyKey !== undefined && sides.copies.isAhead(copyKey))) {
      // The watch will show it and bring the key back; if it does not, what was believed is looked at again.
      turn.later(answerTrustMs);
    }
    return turn.result;
  }
}

type Of<Do extends Action['do']> = Extract<Action, { do: Do }>;
