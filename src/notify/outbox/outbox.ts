// What is still to be delivered, and what was. In memory, and without effects; `outbox-store.ts`
// keeps it over restarts.
//
//   offer ─> pending ─ next ─> sent ─ settle ─> told
//               ^                └─ refused: due again later
//               └─ moot, or a day old: dropped, and counted by the caller

import { jittered } from '../../kit/backoff.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { Delivery } from '../facts/deliveries-of.ts';
import { tellableMs } from '../facts/facts-of.ts';
import type { Answer } from '../sink.ts';

/** A fact is matched with subscriptions for this long; then it counts as told. */
export const settledAfterMs = 15 * 60_000;

// All times are epoch ms.

export interface Pending extends Delivery {
  readonly offeredMs: number;
  /** Of its JSON. */
  readonly bytes: number;
  attempts: number;
  dueMs: number;
  /** The ConfigMap that has it. */
  shard?: number;
}

/** As it is stored. */
export type StoredDelivery = Delivery & Pick<Pending, 'attempts' | 'dueMs' | 'shard'>;

export interface Ref {
  readonly ref: string;
  /** Of the newest fact that it shows. */
  readonly atMs: number;
}

/** What a restart keeps. */
export interface OutboxState {
  /** What happened before it is told, or pending. */
  readonly floorMs: number;
  /** By the id of the delivery: when it is before `floorMs`, and need not be kept. */
  readonly told: ReadonlyMap<string, number>;
  readonly refs: ReadonlyMap<string, Ref>;
  readonly pending: readonly StoredDelivery[];
}

interface Line {
  readonly provider: Delivery['provider'];
  /** Oldest first. */
  readonly pending: Map<string, Pending>;
  bytes: number;
  /** By when one message a second would have been sent: at most `burst` ahead of now. */
  pacedMs: number;
  /** As the sink asked. */
  heldUntilMs: number;
}

const retryMs = [5_000, 30_000, 120_000, 600_000] as const;
const lastRetryMs = 3_600_000;
const burst = 10;
const paceMs = 1_000;
/** With more due at once, they are one message. */
const maxSingles = 5;
const maxDigest = 100;
const maxTold = 100_000;
const maxRefs = 2_000;

/** Of all. The ConfigMaps have room for it, even if much of each is left because the next is too long. */
const maxBytes = 5 * 2 ** 20;

export class Outbox {
  readonly #random: () => number;
  /** By the uid of the provider. */
  readonly #lines = new Map<string, Line>();
  readonly #told = new RecentMap<string, number>(maxTold);
  readonly #refs = new RecentMap<string, Ref>(maxRefs);
  readonly floorMs: number;
  /** Something was told since the last write. */
  hasNews = false;

  constructor(state: OutboxState, nowMs: number, random: () => number) {
    this.#random = random;
    this.floorMs = state.floorMs;
    for (const [id, untilMs] of state.told) this.#told.set(id, untilMs);
    for (const [key, ref] of state.refs) this.#refs.set(key, ref);
    for (const stored of state.pending) if (!this.knows(stored)) this.#add(stored, nowMs);
  }

  /** Pending or told. */
  knows({ id, provider }: Pick<Delivery, 'id' | 'provider'>): boolean {
    return this.#told.has(id) || this.#lines.get(provider.uid)?.pending.has(id) === true;
  }

  /** False if there is no room: offer it again later. */
  offer(delivery: Delivery, nowMs: number): boolean {
    const bytes = sizeOf(delivery);
    const lines = [...this.#lines.values()];
    const left = maxBytes - sum(lines.map((line) => line.bytes));
    // At most as much as is left for others, so that no namespace can fill the outbox.
    const share = sum(lines.filter((line) => shareOf(line) === shareOf(delivery)).map((line) => line.bytes));
    if (share + 2 * bytes > left) return false;
    this.#add({ ...delivery, attempts: 0, dueMs: nowMs }, nowMs, bytes);
    return true;
  }

  /** Drops what is no longer worth telling of the request, and returns it. */
  keepOnly(requestUid: string, factIds: ReadonlySet<string>): Pending[] {
    return this.#drop(
      this.pending.filter(({ fact }) => fact.request.uid === requestUid && !fact.session && !factIds.has(fact.id)),
    );
  }

  /** What could not be delivered within a day. */
  expire(providerUid: string, nowMs: number): Pending[] {
    return this.#drop(this.pendingOf(providerUid).filter(({ fact }) => nowMs - fact.atMs >= tellableMs));
  }

  /** When the oldest of the provider will have waited for a day. */
  nextExpiryMs(providerUid: string): number | undefined {
    const pending = this.pendingOf(providerUid);
    return pending.length > 0 ? Math.min(...pending.map(({ fact }) => fact.atMs)) + tellableMs : undefined;
  }

  /** Of a provider that does not exist any more. */
  dropProvider(providerUid: string): Pending[] {
    const dropped = this.#drop(this.pendingOf(providerUid));
    this.#lines.delete(providerUid);
    return dropped;
  }

  /** What to send in one message, or when (epoch ms). Undefined: at the next offer. */
  next(providerUid: string, nowMs: number): readonly Pending[] | number | undefined {
    const line = this.#lines.get(providerUid);
    if (!line || line.pending.size === 0) return undefined;
    // The clock may have been set back.
    line.pacedMs = Math.min(line.pacedMs, nowMs + burst * paceMs);
    const startMs = Math.max(nowMs, line.heldUntilMs, line.pacedMs - (burst - 1) * paceMs);
    if (startMs > nowMs) return startMs;
    const due = [...line.pending.values()].filter(({ dueMs }) => dueMs <= nowMs);
    const first = due.find(isEmergency) ?? due[0];
    if (!first) return Math.min(...[...line.pending.values()].map(({ dueMs }) => dueMs));
    const alike = due.filter(
      (one) =>
        namespaceOf(one) === namespaceOf(first) && one.to === first.to && (isEmergency(one) || !isEmergency(first)),
    );
    return alike.length > maxSingles ? alike.slice(0, maxDigest) : [first];
  }

  /** When the provider gets a message, before its answer. */
  took(providerUid: string, nowMs: number): void {
    const line = this.#lines.get(providerUid);
    if (line) line.pacedMs = Math.max(line.pacedMs, nowMs) + paceMs;
  }

  settle(sent: readonly Pending[], answer: Answer, nowMs: number): void {
    if (answer.delivered) {
      for (const { id, settledMs } of sent) this.#told.set(id, Math.max(nowMs, settledMs));
      this.hasNews = true;
      this.#drop(sent);
      const [only, ...others] = sent;
      const isNewest = only && (this.#refs.get(refKey(only))?.atMs ?? 0) <= only.fact.atMs;
      if (answer.ref && isNewest && only.fact.request.uid && others.length === 0)
        this.#refs.set(refKey(only), { ref: answer.ref, atMs: only.fact.atMs });
      return;
    }
    const line = this.#lines.get(sent[0]?.provider.uid ?? '');
    if (answer.retryAfterMs !== undefined) {
      // The sink says when it has time for any message, so this is no attempt of these.
      if (line) line.heldUntilMs = nowMs + Math.min(Math.max(answer.retryAfterMs, retryMs[0]), lastRetryMs);
      return;
    }
    for (const pending of sent) {
      pending.dueMs = nowMs + Math.round(jittered(retryMs[pending.attempts] ?? lastRetryMs, 0.2, this.#random));
      pending.attempts += 1;
    }
  }

  /** All are due now. */
  release(providerUid: string, nowMs: number): void {
    const line = this.#lines.get(providerUid);
    if (!line) return;
    line.heldUntilMs = 0;
    for (const pending of line.pending.values()) pending.dueMs = Math.min(pending.dueMs, nowMs);
  }

  /** As a message repeats it. An older fact does not replace a newer one. */
  refOf(pending: Pending): string | undefined {
    const { ref, atMs = 0 } = this.#refs.get(refKey(pending)) ?? {};
    return atMs <= pending.fact.atMs ? ref : undefined;
  }

  pendingOf(providerUid: string): Pending[] {
    return [...(this.#lines.get(providerUid)?.pending.values() ?? [])];
  }

  get pending(): Pending[] {
    return [...this.#lines.values()].flatMap(({ pending }) => [...pending.values()]);
  }

  get providers(): Delivery['provider'][] {
    return [...this.#lines.values()].map(({ provider }) => provider);
  }

  /** Since when a delivery waits that has no place in a ConfigMap. */
  get unstoredSinceMs(): number | undefined {
    const unstored = this.pending.filter(({ shard }) => shard === undefined);
    return unstored.length > 0 ? Math.min(...unstored.map(({ offeredMs }) => offeredMs)) : undefined;
  }

  /** `seenMs`: until then, every fact was offered. Forgets what `floorMs` covers. */
  stateAt(seenMs: number): OutboxState & { readonly pending: readonly Pending[] } {
    const floorMs = Math.max(this.floorMs, seenMs - settledAfterMs);
    for (const [id, untilMs] of this.#told) if (untilMs <= floorMs) this.#told.delete(id);
    for (const [key, { atMs }] of this.#refs) if (atMs <= seenMs - tellableMs) this.#refs.delete(key);
    return { floorMs, told: this.#told, refs: this.#refs, pending: this.pending };
  }

  #add(stored: StoredDelivery, nowMs: number, bytes = sizeOf(stored)): void {
    const { provider } = stored;
    const fresh = { provider, pending: new Map<string, Pending>(), bytes: 0, pacedMs: 0, heldUntilMs: 0 };
    const line = this.#lines.get(provider.uid) ?? fresh;
    this.#lines.set(provider.uid, line);
    line.pending.set(stored.id, { ...stored, bytes, offeredMs: nowMs });
    line.bytes += bytes;
  }

  #drop<Dropped extends readonly Pending[]>(list: Dropped): Dropped {
    for (const { id, provider, bytes } of list) {
      const line = this.#lines.get(provider.uid);
      if (line?.pending.delete(id)) line.bytes -= bytes;
    }
    return list;
  }
}

const sizeOf = (delivery: Delivery): number => Buffer.byteLength(JSON.stringify(delivery)) + 64;
/** By the namespace of the provider. */
const shareOf = ({ provider }: Pick<Delivery, 'provider'>): string => provider.key.split('/')[0] ?? '';
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const refKey = ({ provider, fact, to = '' }: Delivery): string => `${provider.uid}/${fact.request.uid}/${to}`;
const isEmergency = ({ fact }: Delivery): boolean => fact.event === 'emergency';
const namespaceOf = ({ fact }: Delivery): string => fact.request.namespace;
