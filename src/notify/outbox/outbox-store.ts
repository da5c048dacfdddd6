// The outbox in ConfigMaps: shard 0 has what was told, the others what is pending. A pending
// delivery stays in its shard, so that a change of one writes one.

import { apiVersionOf } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { configMaps } from '../../api/resources.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Log } from '../../observe/log.ts';
import {
  type Outbox,
  type OutboxState,
  type Pending,
  type Ref,
  type StoredDelivery,
  settledAfterMs,
} from './outbox.ts';

/** Of `drawbridge-notify-outbox-0` and so on. */
export const outboxShards = 16;
const outboxName = (shard: number): string => `drawbridge-notify-outbox-${shard}`;
/** Of the pending deliveries of a shard, which has at most 512 KiB. */
const maxShardBytes = 500 * 2 ** 10;
/** Beyond, the oldest may be told twice after a restart. */
const maxStoredTold = 12_000;

export interface OutboxStoreDeps {
  readonly client: Pick<Client, 'get' | 'apply'>;
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Of one leadership. Calls must not overlap. */
export class OutboxStore {
  readonly #deps: OutboxStoreDeps;
  /** As read or written last. Without a version, the next write replaces whatever there is. */
  readonly #shards: { readonly version: string | undefined; readonly text: string }[] = [];

  constructor(deps: OutboxStoreDeps) {
    this.#deps = deps;
  }

  /** Live, so that no delivery of the leader before is missed. At the first start, nothing is told that happened before. */
  async load(signal: AbortSignal): Promise<OutboxState & { readonly isFirst: boolean }> {
    const nowMs = this.#deps.clock.now();
    const texts = await Promise.all(Array.from({ length: outboxShards }, (_, shard) => this.#read(shard, signal)));
    const head = this.#parsed(0, texts[0]);
    const pending = texts.flatMap((text, shard) => {
      const list = shard === 0 ? [] : this.#parsed(shard, text);
      return Array.isArray(list) ? list.filter(isDelivery).map((one) => ({ ...one, shard })) : [];
    });
    pending.sort((a, b) => a.fact.atMs - b.fact.atMs);
    const storedMs = own(head, 'floorMs');
    const isFirst = texts.every((text) => text === undefined);
    // Without its record, tell twice rather than never.
    // Times of the API server have whole seconds.
    const startMs = isFirst ? nowMs - (nowMs % 1000) - 1 : nowMs - settledAfterMs;
    // A clock that ran ahead must not silence what happens next.
    const floorMs = typeof storedMs === 'number' ? Math.min(storedMs, nowMs) : startMs;
    return { isFirst, floorMs, told: mapOf(head, 'told', isNumber), refs: mapOf(head, 'refs', isRef), pending };
  }

  /** Writes the shards that changed. Rejects as the client does; then it may have written some. */
  async write(state: Omit<OutboxState, 'pending'> & { readonly pending: readonly Pending[] }, signal: AbortSignal) {
    const told = [...state.told].slice(-maxStoredTold);
    const head = { floorMs: state.floorMs, told: Object.fromEntries(told), refs: Object.fromEntries(state.refs) };
    // The head last: what it covers must be stored, and telling twice is better than never.
    for (const { shard, list } of shardsOf(state.pending)) await this.#writeShard(shard, JSON.stringify(list), signal);
    await this.#writeShard(0, JSON.stringify(head), signal);
  }

  async #read(shard: number, signal: AbortSignal): Promise<string | undefined> {
    const name = { namespace: this.#deps.namespace, name: outboxName(shard) };
    const object = await findObject(this.#deps.client, configMaps, name, { signal });
    const text = String(own(own(object, 'data'), 'state') ?? '');
    this.#shards[shard] = { version: object?.metadata.resourceVersion, text };
    return object && text;
  }

  async #writeShard(shard: number, text: string, signal: AbortSignal): Promise<void> {
    const { version, text: before } = this.#shards[shard] ?? { version: undefined, text: '' };
    if (text === before || (before === '' && text === '[]')) return;
    const { client, namespace } = this.#deps;
    const resourceVersion = version === undefined ? {} : { resourceVersion: version };
    const object = {
      apiVersion: apiVersionOf(configMaps),
      kind: configMaps.kind,
      metadata: { namespace, name: outboxName(shard), labels: { ...ownLabels }, ...resourceVersion },
      data: { state: text },
    };
    // Until the answer: of unknown content. This process leads, so another attempt replaces it.
    this.#shards[shard] = { version: undefined, text: ' ' };
    const written = await client.apply(configMaps, object, { signal, fieldManager: 'drawbridge', force: true });
    this.#shards[shard] = { version: written.metadata.resourceVersion, text };
  }

  #parsed(shard: number, text: string | undefined): unknown {
    if (text === undefined || text === '') return undefined;
    try {
      return JSON.parse(text);
    } catch (error) {
      const [name, problem] = [outboxName(shard), describe(error)];
      this.#deps.log.error('a part of the outbox cannot be read, and is replaced', { name, error: problem });
      return undefined;
    }
  }
}

/** The content of each. A new delivery gets a place in the first that has room, and keeps it. */
function shardsOf(pending: readonly Pending[]) {
  const shards = Array.from({ length: outboxShards - 1 }, (_, index) => ({
    shard: index + 1,
    bytes: 0,
    list: [] as StoredDelivery[],
  }));
  const isNew = ({ shard }: Pending): boolean => shard === undefined;
  for (const one of [...pending.filter((old) => !isNew(old)), ...pending.filter(isNew)]) {
    const its = shards.find(({ shard, bytes }) =>
      isNew(one) ? bytes + one.bytes <= maxShardBytes : shard === one.shard,
    );
    if (!its) continue;
    one.shard = its.shard;
    its.bytes += one.bytes;
    const { bytes: _, offeredMs: __, ...stored } = one;
    its.list.push(stored);
  }
  return shards;
}

/** When to write: what waits is stored soon, what was told when a minute has passed. Epoch ms. */
export function nextWriteMs(
  { unstoredSinceMs, hasNews }: Pick<Outbox, 'unstoredSinceMs' | 'hasNews'>,
  lastWriteMs: number,
): number | undefined {
  const times = hasNews ? [lastWriteMs + newsEveryMs] : [];
  if (unstoredSinceMs !== undefined)
    times.push(Math.max(unstoredSinceMs, lastWriteMs - storeAfterMs / 2) + storeAfterMs);
  return times.length > 0 ? Math.min(...times) : undefined;
}

const storeAfterMs = 2_000;
const newsEveryMs = 60_000;

/** Only the server writes it, but maybe another version. */
const isRef = (value: unknown): value is Ref => typeof own(value, 'ref') === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';
const isDelivery = (value: unknown): value is StoredDelivery =>
  [own(value, 'id'), own(own(value, 'provider'), 'key'), own(own(own(value, 'fact'), 'request'), 'uid')].every(
    (text) => typeof text === 'string',
  );

function mapOf<T>(head: unknown, field: string, is: (value: unknown) => value is T): Map<string, T> {
  const map = own(head, field);
  return new Map(Object.entries(isRecord(map) ? map : {}).filter((entry): entry is [string, T] => is(entry[1])));
}
