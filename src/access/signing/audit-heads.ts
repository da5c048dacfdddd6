import type { KubeObject } from '../../api/object.ts';
import { configMaps } from '../../api/resources.ts';
import type { ChainHead } from '../../audit/chain.ts';
import { HeadSigner, parseHead } from '../../audit/head.ts';
import { type Clock, formatMicroTime, sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { withDeadline } from '../../kit/promises.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Log } from '../../observe/log.ts';
import { patchConfigMap } from './config-map.ts';
import type { KeyRing } from './signer.ts';

interface AuditHeadsDeps {
  readonly client: Client;
  /** Namespace of the ConfigMap. */
  readonly namespace: string;
  readonly name: string;
  /** Name of this replica, recorded in its heads. */
  readonly replica: string;
  readonly journal: { readonly head: ChainHead };
  readonly keys: Pick<KeyRing, 'keys'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each attempt that was not aborted, with the number of lines of this process that no published head covers. */
  readonly onUnsigned?: (lines: number) => void;
}

/** Pause between two attempts to publish, milliseconds. While attempts succeed, a head covers a new line after about this time at most. */
const publishEveryMs = 5000;
/** Interval between checks of an unchanged head, milliseconds: another client may have removed it. */
const recheckMs = 300_000;
/** Maximum time that publishing the last head delays the exit of the process, milliseconds. */
const lastWriteMs = 2000;
/** Maximum number of heads in the ConfigMap; each takes about 450 bytes. Beyond it, the server removes invalid, then the oldest heads. */
export const maxHeads = 128;

/** Publishes the signed head of this process's audit chain if the chain grew, the key changed, or another client changed the entry. */
export class AuditHeads {
  readonly #deps: AuditHeadsDeps;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #signer: { readonly secret: Uint8Array; readonly signer: HeadSigner } | undefined;
  /** The last head that this process published or found unchanged; `atMs` is on the monotonic clock. */
  #published = { seq: 0, key: '', text: '', atMs: 0 };
  #failing = false;

  constructor(deps: AuditHeadsDeps) {
    this.#deps = deps;
  }

  /** Until `close`, publishes the head if it changed, with pauses of 5 s. Further calls have no effect. */
  start(): void {
    this.#running ??= this.#run(this.#stopping.signal);
  }

  /** Stops and publishes the last head, for at most 2 s. Call it after the last line. Never rejects. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const timeout = new AbortController();
    await withDeadline(this.#deps.clock, lastWriteMs, this.publish(timeout.signal)).catch((error: unknown) => {
      timeout.abort(error);
      this.#deps.log.warn('last audit head not published', { error: describe(error) });
    });
  }

  /** Publishes the current head if it changed. Every 5 minutes, also checks whether the ConfigMap still has it. Never rejects. */
  async publish(signal?: AbortSignal): Promise<void> {
    try {
      await this.#publishIfChanged(signal ? { signal } : {});
      this.#failing = false;
    } catch (error) {
      if (signal?.aborted) return;
      // Log once per outage; the metric shows how long it lasts.
      if (!this.#failing) this.#deps.log.error('audit head not published', { error: describe(error) });
      this.#failing = true;
    }
    this.#deps.onUnsigned?.(this.#deps.journal.head.seq - this.#published.seq);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      await this.publish(signal);
      await sleep(clock, publishEveryMs, signal).catch(() => undefined);
    }
  }

  async #publishIfChanged(options: { signal?: AbortSignal }): Promise<void> {
    const { journal, clock, replica } = this.#deps;
    const { head } = journal;
    const signer = this.#currentSigner();
    if (head.seq === 0 || !signer) return;
    if (head.seq === this.#published.seq && signer.publicKey === this.#published.key) {
      if (clock.monotonic() - this.#published.atMs < recheckMs || (await this.#isStillPublished(options))) return;
    }
    const text = JSON.stringify(signer.sign({ ...head, replica, time: formatMicroTime(clock.now()) }));
    const written = await this.#write({ [head.chain]: text }, options);
    this.#published = { seq: head.seq, key: signer.publicKey, text, atMs: clock.monotonic() };
    const surplus = surplusOf(written, head.chain);
    if (surplus.length > 0) await this.#write(Object.fromEntries(surplus.map((chain) => [chain, null])), options);
  }

  async #isStillPublished(options: { signal?: AbortSignal }): Promise<boolean> {
    const { client, journal, clock, log } = this.#deps;
    const found = await findObject(client, configMaps, this.#name, options);
    const isPublished = own(own(found, 'data'), journal.head.chain) === this.#published.text;
    if (isPublished) this.#published = { ...this.#published, atMs: clock.monotonic() };
    else log.warn('the audit head in the ConfigMap was removed or changed; publishing it again');
    return isPublished;
  }

  /** A merge patch without a lock: each process changes only its own entry and removes surplus ones, so replicas do not conflict. */
  async #write(data: Readonly<Record<string, string | null>>, options: { signal?: AbortSignal }): Promise<KubeObject> {
    return patchConfigMap(this.#deps.client, this.#name, { data }, options);
  }

  #currentSigner(): HeadSigner | undefined {
    const secret = this.#deps.keys.keys?.current;
    if (!secret) return undefined;
    if (this.#signer?.secret !== secret) this.#signer = { secret, signer: new HeadSigner(secret) };
    return this.#signer.signer;
  }

  get #name() {
    const { namespace, name } = this.#deps;
    return { namespace, name };
  }
}

/** The entries beyond the limit: invalid ones first, then those signed longest ago; never that of `ownChain`. */
function surplusOf(configMap: KubeObject, ownChain: string): string[] {
  const data = own(configMap, 'data');
  if (!isRecord(data)) return [];
  const names = Object.keys(data);
  const signedAt = (name: string): string => parseHead(data[name])?.time ?? '';
  return names
    .filter((name) => name !== ownChain)
    .map((name) => ({ name, time: signedAt(name) }))
    .sort((a, b) => (a.time < b.time ? -1 : 1))
    .slice(0, Math.max(0, names.length - maxHeads))
    .map(({ name }) => name);
}
