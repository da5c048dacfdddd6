import { bindFieldManager } from '../../api/binding/names.ts';
import { nameOf, type Resource } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { SyncObserver } from '../metrics.ts';
import {
  call,
  look,
  type Outcome,
  requestNamespace,
  type Settled,
  type Step,
  type SyncKind,
  type SyncMode,
  type Turn,
} from '../sync-engine/kind.ts';
import type { ConsumerObjects } from './consumer-objects.ts';
import type { Copies } from './copies.ts';
import type { Isolation } from './isolation.ts';
import { copyPatch, statusPatch } from './patches.ts';
import { type Action, copyKeyOf, plan, type Situation, type Terms } from './plan.ts';
import { Repairs, type Sides } from './sides.ts';
import { StatusPace } from './status-pace.ts';
import { isDeleting, type Projection, projectObject, type SyncedObject } from './synced-object.ts';

export interface BoundObjectsOptions {
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
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  readonly observer: SyncObserver;
  readonly clock: Clock;
}

/** Between looks at a copy in a namespace that is not watched. */
const UNWATCHED_MS = 1_000;

/** The kind of sync that bound objects are: the consumer's object goes up, its copy's status comes down, merge patch by merge patch. */
export class BoundObjects implements SyncKind {
  readonly rules = {
    forbiddenAtOnce: true,
    // Each is a write, if one that changes nothing, and all objects of a kind may be in this case.
    futileCapMs: 30 * 60_000,
    futile: {
      provider:
        'the provider accepts what is written to its copy and keeps something else: a webhook or a default of its own changes it',
      consumer: 'the status of the copy has fields that are not kept here: the schema here does not know them',
    },
  };
  readonly #options: BoundObjectsOptions;
  readonly #pace = new StatusPace();
  readonly #drift = new Repairs();

  constructor(options: BoundObjectsOptions) {
    this.#options = options;
  }

  missing(key: string): string | undefined {
    const { mode, consumers, copies, isolation, resources, namespacesKnown } = this.#options;
    const here = consumers.state === 'listed' || (consumers.state === 'absent' && mode !== 'sync');
    if (!here) return `${resources.consumer.plural} of this cluster`;
    if (!namespacesKnown()) return 'the namespaces of the provider';
    const place = isolation.placeOf(key);
    if (place.kind === 'at' && !copies.knows(place.key)) return `${resources.provider.plural} of the provider`;
    return undefined;
  }

  plan({ key }: Turn): Step[] {
    const situation = this.#situation(key);
    const actions = plan(situation, this.#options.terms());
    const { consumer, copy } = situation;
    if (consumer && copy && actions.every(({ do: verb }) => verb === 'mark' || verb === 'status')) {
      this.#drift.inStep(consumer);
    }
    return actions.flatMap((action) => this.#steps(action, situation));
  }

  settle(key: string): Settled {
    const { sides } = this.#options;
    const { consumer, copy, copyKey } = this.#situation(key);
    const isGone = !consumer && !copy;
    if (isGone) {
      sides.forget(key, copyKey);
      this.#pace.forget(key);
      this.#drift.forget(key);
    }
    const isAhead = sides.consumers.isAhead(key) || (copyKey !== undefined && sides.copies.isAhead(copyKey));
    return { consumer, isGone, isAhead };
  }

  clear(): void {
    this.#options.sides.clear();
    this.#pace.clear();
    this.#drift.clear();
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

  #steps(action: Action, situation: Situation): readonly Step[] {
    switch (action.do) {
      case 'wait':
      case 'complain':
        return [action];
      case 'requestNamespace':
        return [
          requestNamespace(action.namespace, (signal) => this.#options.requestNamespace(action.namespace, signal)),
          { do: 'wait', missing: `the provider's namespace for ${action.namespace}` },
        ];
      case 'create':
        return [this.#create(action, situation)];
      case 'update':
        return [this.#update(action, situation)];
      case 'mark':
        return [this.#mark(action, situation)];
      case 'status':
        return [this.#status(action, situation)];
      case 'deleteCopy':
        return this.#deleteCopy(action, situation);
      case 'lookForCopy':
        return [this.#lookForCopy(action.key)];
      case 'unmark':
        return [this.#unmark(action, situation)];
    }
  }

  #create({ key, object }: Of<'create'>, { consumer }: Situation): Step {
    const { clients, resources, sides } = this.#options;
    return call({
      action: 'create',
      side: 'provider',
      content: `${key} ${consumer?.uid} ${consumer?.resourceVersion}`,
      repeatable: true,
      carries: 'up',
      call: async (signal) => {
        // From here on nobody knows any more that there is none.
        sides.copyComing(key);
        try {
          const options = { signal, fieldManager: bindFieldManager };
          await this.#copy(key, () => clients.provider.create(resources.provider, object, options));
        } catch (error) {
          if (!isAlreadyExists(error)) throw error;
          await this.#readCopy(key, signal);
        }
      },
      onSuccess: () => {
        this.#noteRepair(consumer);
        return 'plan again';
      },
    });
  }

  #update({ key, patch }: Of<'update'>, { consumer }: Situation): Step {
    const { clients, resources, terms } = this.#options;
    const content = JSON.stringify(patch);
    const update = {
      action: 'update',
      side: 'provider',
      content,
      call: (signal: AbortSignal) => {
        const options = { signal, fieldManager: bindFieldManager };
        return this.#copy(key, () => clients.provider.mergePatch(resources.provider, nameOf(key), patch, options));
      },
    } as const;
    if (!consumer || isDeleting(consumer)) return call({ ...update, onSuccess: () => 'plan again' });
    return call({
      ...update,
      carries: 'up',
      onFailure: 'go on',
      isFutile: (copy) => isLeft(copyPatch(consumer, copy, terms()), content),
      onSuccess: () => {
        this.#noteRepair(consumer);
        return 'go on';
      },
    });
  }

  #mark({ patch }: Of<'mark'>, { key, consumer }: Situation): Step {
    return call({
      action: 'mark',
      side: 'consumer',
      content: JSON.stringify(patch),
      call: (signal) => this.#patchConsumer(key, patch, { signal }),
      // It went before it could be held, and now its copy has to go as well.
      onGone: () => this.#consumerGone(key, consumer),
    });
  }

  #status({ patch }: Of<'status'>, { key, copy }: Situation): Step {
    const { clock } = this.#options;
    const waitMs = this.#pace.waitMs(key, clock.monotonic());
    if (waitMs > 0) return { do: 'later', ms: waitMs };
    const content = JSON.stringify(patch);
    return call({
      action: 'status',
      side: 'consumer',
      content,
      carries: 'down',
      onFailure: 'go on',
      call: (signal) => {
        this.#pace.wrote(key, clock.monotonic());
        return this.#patchConsumer(key, patch, { signal, subresource: 'status' });
      },
      isFutile: (consumer) => copy !== undefined && isLeft(statusPatch(consumer, copy), content),
    });
  }

  /** The copy of a consumer object that nobody saw being deleted: not many at a time, and only after asking whether it is true. */
  #deleteCopy({ key, uid, inferred }: Of<'deleteCopy'>, situation: Situation): Step[] {
    const { clients, copies, mode, resources, sides } = this.#options;
    const deleted: Step[] = [{ do: 'wait', missing: `the end of ${key} in the provider` }];
    if (!copies.knows(key)) deleted.push({ do: 'later', ms: UNWATCHED_MS });
    const deletion = call({
      action: 'deleteCopy',
      side: 'provider',
      content: uid,
      inferred,
      call: (signal) => clients.provider.delete(resources.provider, nameOf(key), { uid, signal }),
      onSuccess: (answer) => {
        if (!copies.knows(key)) sides.copies.forget(key);
        else if (answer === 'absent') sides.copies.deleted(key, uid);
        else sides.copies.deleting(key, uid);
        return 'go on';
      },
    });
    if (!inferred) return [deletion, ...deleted];
    const heldBack: Step[] = mode === 'sync' ? [{ do: 'holdBack' }] : [];
    return [...heldBack, this.#confirm(situation.key, uid), deletion, ...deleted];
  }

  /** Asks whether the consumer object is really gone. */
  #confirm(key: string, copyUid: string): Step {
    const { clients, consumers, resources, sides } = this.#options;
    return call({
      action: 'confirm',
      side: 'consumer',
      content: copyUid,
      repeatable: true,
      call: async (signal) => {
        if (consumers.state === 'absent') return 'absent';
        await sides.consumers.call(key, async () =>
          projectObject(await clients.consumer.get(resources.consumer, nameOf(key), { signal })),
        );
        return 'found';
      },
      onGone: () => 'go on',
      onSuccess: (answer) => (answer === 'found' ? 'plan again' : 'go on'),
    });
  }

  #lookForCopy(key: string): Step {
    return look({
      action: 'look',
      side: 'provider',
      content: key,
      call: (signal) => this.#readCopy(key, signal),
      onGone: () => {
        this.#options.sides.copyGone(key);
        return 'plan again';
      },
    });
  }

  #unmark({ patch }: Of<'unmark'>, { key, consumer }: Situation): Step {
    return call({
      action: 'unmark',
      side: 'consumer',
      content: JSON.stringify(patch),
      call: (signal) => this.#patchConsumer(key, patch, { signal }),
      onGone: () => this.#consumerGone(key, consumer),
    });
  }

  #consumerGone(key: string, consumer: SyncedObject | undefined): Outcome {
    if (consumer) this.#options.sides.consumerGone(key, consumer.uid);
    return 'plan again';
  }

  #noteRepair(consumer: SyncedObject | undefined): void {
    if (consumer && this.#drift.wasInStep(consumer)) this.#options.observer.repaired();
  }

  #patchConsumer(
    key: string,
    patch: object,
    options: { readonly signal: AbortSignal; readonly subresource?: string },
  ): Promise<SyncedObject> {
    const { clients, resources, sides } = this.#options;
    return sides.consumers.call(key, async () =>
      projectObject(await clients.consumer.mergePatch(resources.consumer, nameOf(key), patch, options)),
    );
  }

  #readCopy(key: string, signal: AbortSignal): Promise<SyncedObject> {
    const { clients, resources } = this.#options;
    return this.#copy(key, () => clients.provider.get(resources.provider, nameOf(key), { signal }));
  }

  #copy(key: string, request: () => ReturnType<Client['get']>): Promise<SyncedObject> {
    const { copyProjection, sides } = this.#options;
    return sides.copies.call(key, async () => copyProjection(await request()));
  }
}

/** Whether the same patch would be written again. */
const isLeft = (patch: object | undefined, content: string): boolean =>
  patch !== undefined && JSON.stringify(patch) === content;

type Of<Do extends Action['do']> = Extract<Action, { do: Do }>;
