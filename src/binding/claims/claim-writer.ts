import { bindFieldManager, ownerLabel } from '../../api/binding/names.ts';
import type { KubeObject, ObjectName, Resource } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import { Attempts } from '../sync/attempts.ts';
import { stringsOf, viewClaimed } from './claimed-view.ts';
import { copyOf, isInStep } from './copy.ts';
import type { ClaimAction, Side } from './plan.ts';

export interface ClaimWriterOptions {
  readonly resource: Resource;
  readonly clients: Readonly<Record<Side, Client>>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly onWritten: (side: Side, key: string) => void;
  readonly onConflict: (side: Side) => void;
}

/** One key as it was read on both sides; undefined where there is nothing. */
export interface LivePair {
  readonly key: string;
  readonly places: Readonly<Record<Side, ObjectName>>;
  readonly objects: Readonly<Record<Side, KubeObject | undefined>>;
  /** In words, by which part of a claim it is selected; for the log. */
  readonly why?: string | undefined;
}

type Write = Exclude<ClaimAction, { kind: 'request-namespace' }>;

/** Reads both sides of a key, and brings about what was planned on that reading. Whatever has changed in between is refused. */
export class ClaimWriter {
  readonly #options: ClaimWriterOptions;
  /** Somebody may undo what we do; two programs that disagree must not race. */
  readonly #attempts: Attempts;

  constructor(options: ClaimWriterOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options.random);
  }

  async read(key: string, places: LivePair['places'], signal: AbortSignal): Promise<LivePair> {
    const [consumer, provider] = await Promise.all([
      this.#get('consumer', places.consumer, signal),
      this.#get('provider', places.provider, signal),
    ]);
    return { key, places, objects: { consumer, provider } };
  }

  /**
   * Milliseconds until the rest of the actions may be tried again; 0 when all are done. Infinity when one of them was done and did
   * not last, because the cluster keeps something else: then not before the original changes, or `clear`.
   */
  async perform(actions: readonly ClaimAction[], pair: LivePair, signal: AbortSignal): Promise<number> {
    const objects = { ...pair.objects };
    for (const action of actions) {
      if (action.kind === 'request-namespace') continue;
      const { key } = pair;
      const content = contentOf(action, objects);
      const waitMs = this.#attempts.waitMs(key, keyOf(action), content, this.#options.clock.monotonic());
      if (waitMs > 0) return waitMs;
      objects[action.side] = await this.#write(action, { ...pair, objects }, signal);
      const nowMs = this.#options.clock.monotonic();
      if (isFutile(action, objects)) this.#attempts.futile(key, keyOf(action), content, nowMs);
      else this.#attempts.succeeded(key, keyOf(action), content, nowMs);
      if (action.kind !== 'label') this.#options.onWritten(action.side, key);
    }
    return 0;
  }

  /** Forgets what it knows of earlier writes. */
  clear(): void {
    this.#attempts.clear();
  }

  async #write(action: Write, pair: LivePair, signal: AbortSignal): Promise<KubeObject | undefined> {
    const { log, onConflict } = this.#options;
    try {
      const object = await this.#call(action, pair, signal);
      const { key, why } = pair;
      log.info('claimed object written', { key, action: action.kind, side: action.side, why });
      return object;
    } catch (error) {
      if (isConflict(error)) onConflict(action.side);
      throw error;
    }
  }

  async #call(action: Write, { places, objects }: LivePair, signal: AbortSignal): Promise<KubeObject | undefined> {
    const { resource, clients } = this.#options;
    const { side } = action;
    const client = clients[side];
    const options = { fieldManager: bindFieldManager, signal };
    const [present, original] = [objects[side], objects[side === 'consumer' ? 'provider' : 'consumer']];
    switch (action.kind) {
      case 'delete':
        await client.delete(resource, places[side], { uid: action.uid, signal });
        return undefined;
      case 'label':
        return present && client.replace(resource, withOwner(present, side), options);
      case 'create':
        return original && client.create(resource, copyOf(original, action.identity), options);
      case 'update':
        return original && client.replace(resource, copyOf(original, action.identity, present), options);
    }
  }

  async #get(side: Side, place: ObjectName, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await this.#options.clients[side].get(this.#options.resource, place, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

function withOwner(object: KubeObject, owner: Side): KubeObject {
  const labels = { ...stringsOf(object.metadata.labels), [ownerLabel]: owner };
  return { ...object, metadata: { ...object.metadata, labels } };
}

/** Whether the copy, as the cluster answered, is still not what was written. */
function isFutile(action: Write, objects: LivePair['objects']): boolean {
  if (action.kind !== 'update') return false;
  const [copy, original] = [objects[action.side], objects[action.side === 'consumer' ? 'provider' : 'consumer']];
  const [now, wanted] = [copy && viewClaimed(copy), original && viewClaimed(original)];
  return now !== undefined && wanted !== undefined && !isInStep(wanted, now, action.identity);
}

/** An object that was deleted may be created again with the same content, and the other way round. */
const keyOf = ({ kind, side }: Write): string => `${kind === 'create' ? 'update' : kind} ${side}`;

/** The same for what would be written a second time. */
function contentOf(action: Write, objects: LivePair['objects']): string {
  if (action.kind === 'delete') return action.uid;
  if (action.kind === 'label') return objects[action.side]?.metadata.uid ?? '';
  const original = objects[action.side === 'consumer' ? 'provider' : 'consumer'];
  const view = original && viewClaimed(original);
  return `${view?.uid} ${view?.content} ${view?.dress}`;
}
