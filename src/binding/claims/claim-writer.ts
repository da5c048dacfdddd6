import { bindFieldManager, ownerLabel } from '../../api/binding/names.ts';
import type { KubeObject, ObjectName, Resource } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import { stringsOf, viewClaimed } from './claimed-view.ts';
import { copyOf } from './copy.ts';
import type { ClaimAction, Side } from './plan.ts';
import { RepairPace } from './repair-pace.ts';

export interface ClaimWriterOptions {
  readonly resource: Resource;
  readonly clients: Readonly<Record<Side, Client>>;
  readonly clock: Clock;
  readonly log: Log;
  readonly onWritten: (side: Side, key: string) => void;
  readonly onConflict: (side: Side) => void;
}

/** One key as it was read on both sides; undefined where there is nothing. */
export interface LivePair {
  readonly key: string;
  readonly places: Readonly<Record<Side, ObjectName>>;
  readonly objects: Readonly<Record<Side, KubeObject | undefined>>;
}

/** Reads both sides of a key, and brings about what was planned on that reading. Whatever has changed in between is refused. */
export class ClaimWriter {
  readonly #options: ClaimWriterOptions;
  readonly #pace: RepairPace;

  constructor(options: ClaimWriterOptions) {
    this.#options = options;
    this.#pace = new RepairPace(options.clock);
  }

  async read(key: string, places: LivePair['places'], signal: AbortSignal): Promise<LivePair> {
    const [consumer, provider] = await Promise.all([
      this.#get('consumer', places.consumer, signal),
      this.#get('provider', places.provider, signal),
    ]);
    return { key, places, objects: { consumer, provider } };
  }

  /** Milliseconds until the rest of the actions may be tried again; 0 when all are done. */
  async perform(actions: readonly ClaimAction[], pair: LivePair, signal: AbortSignal): Promise<number> {
    let { objects } = pair;
    for (const action of actions) {
      if (action.kind === 'label') {
        objects = { ...objects, [action.side]: await this.#label(action.side, objects[action.side], signal) };
        continue;
      }
      const waitMs = await this.#performOne(action, { ...pair, objects }, signal);
      if (waitMs > 0) return waitMs;
    }
    return 0;
  }

  /** There is nothing left under the key. */
  forget(key: string): void {
    this.#pace.forget(key);
  }

  async #performOne(action: ClaimAction, { key, places, objects }: LivePair, signal: AbortSignal): Promise<number> {
    if (action.kind === 'request-namespace' || action.kind === 'label') return 0;
    const { side } = action;
    const { resource, log, onWritten, clients } = this.#options;
    const write = { fieldManager: bindFieldManager, signal };
    const original = objects[other(side)];
    if (action.kind === 'delete') {
      await this.#noting(side, clients[side].delete(resource, places[side], { uid: action.uid, signal }));
      log.info('copy of a claimed object deleted', { key, from: side, reason: action.reason });
    } else if (action.kind === 'create' && original) {
      await this.#noting(side, clients[side].create(resource, copyOf(original, action.identity), write));
      log.info('claimed object copied', { key, to: side });
    } else if (action.kind === 'update' && original) {
      const wanted = fingerprint(side, original);
      const waitMs = this.#pace.delayMs(key, wanted);
      if (waitMs > 0) {
        log.warn('the copy of a claimed object keeps being changed by somebody else', { key, in: side });
        return waitMs;
      }
      await this.#noting(
        side,
        clients[side].replace(resource, copyOf(original, action.identity, objects[side]), write),
      );
      this.#pace.wrote(key, wanted);
    }
    onWritten(side, key);
    return 0;
  }

  async #label(side: Side, object: KubeObject | undefined, signal: AbortSignal): Promise<KubeObject | undefined> {
    if (!object) return undefined;
    const labels = { ...stringsOf(object.metadata.labels), [ownerLabel]: side };
    const labelled = { ...object, metadata: { ...object.metadata, labels } };
    const { clients, resource } = this.#options;
    return this.#noting(side, clients[side].replace(resource, labelled, { fieldManager: bindFieldManager, signal }));
  }

  async #get(side: Side, place: ObjectName, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await this.#options.clients[side].get(this.#options.resource, place, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #noting<T>(side: Side, write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      if (isConflict(error)) this.#options.onConflict(side);
      throw error;
    }
  }
}

const other = (side: Side): Side => (side === 'consumer' ? 'provider' : 'consumer');

/** The same for the same content on the same side, so that writing it twice means that somebody took it away. */
function fingerprint(side: Side, original: KubeObject): string {
  const view = viewClaimed(original);
  return `${side} ${view?.content} ${view?.dress}`;
}
