import { type KubeObject, keyOf } from '../../api/object.ts';
import { configMaps } from '../../api/resources.ts';
import type { ChainHead } from '../../audit/chain.ts';
import { HeadSigner, readHeads } from '../../audit/head.ts';
import { type Clock, formatMicroTime, sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { withDeadline } from '../../kit/promises.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Log } from '../../observe/log.ts';
import { createOrPatchConfigMap } from './config-map.ts';

interface AuditHeadsDeps {
  readonly client: Client;
  /** Namespace of the ConfigMap. */
  readonly namespace: string;
  /** Name of the ConfigMap. */
  readonly name: string;
  /** Name of this replica, recorded in its heads. */
  readonly replica: string;
  readonly journal: { readonly head: ChainHead };
  readonly keys: { readonly key: Uint8Array | undefined };
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each attempt that was not aborted, with the number of lines of this process that no published head covers. */
  readonly onUnsigned?: (lines: number) => void;
}

/** Pause between two attempts to publish, milliseconds. While attempts succeed, a head covers each new line within about this time. */
const publishEveryMs = 5000;
/** Minimum interval between checks of an unchanged head, milliseconds: another client may have removed it. */
const recheckMs = 300_000;
/** Maximum time that publishing the last head delays the exit of the process, milliseconds. */
const lastWriteMs = 2000;
/**
 * Maximum number of entries in the ConfigMap; each takes about 450 bytes. Above it, the server first removes invalid entries, then the
 * oldest heads.
 */
export const maxHeads = 128;

/**
 * Publishes the signed head of this process's audit chain (the number and hash of its last line) in a ConfigMap. Publishes it again if the
 * chain grew, the key changed, or another client changed or removed the entry.
 */
export class AuditHeads {
  readonly #deps: AuditHeadsDeps;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #cached: { readonly secret: Uint8Array; readonly signer: HeadSigner } | undefined;
  /** The last head that this process published. `checkedAtMs`: when it was published or last found unchanged, by the monotonic clock. */
  #published = { seq: 0, publicKey: '', text: '', checkedAtMs: 0 };
  #failing = false;

  constructor(deps: AuditHeadsDeps) {
    this.#deps = deps;
  }

  /** Publishes the head every 5 s if it changed, until `close`. Further calls have no effect. */
  start(): void {
    this.#running ??= this.#run(this.#stopping.signal);
  }

  /**
   * Stops, publishes the head once more if it changed, and gives up after 2 s. Call it after the journal has written its last line. Never
   * rejects.
   */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const timeout = new AbortController();
    await withDeadline(this.#deps.clock, lastWriteMs, this.#publish(timeout.signal)).catch((error: unknown) => {
      timeout.abort(error);
      this.#deps.log.warn('cannot publish the last audit head, so none covers the last lines of the journal', {
        ...this.#logFields,
        error: describe(error),
      });
    });
  }

  /** Publishes the head if it changed. If the last check is 5 minutes old, also checks that the ConfigMap still has it. Never rejects. */
  async #publish(signal: AbortSignal): Promise<void> {
    try {
      await this.#publishIfChanged({ signal });
      this.#failing = false;
    } catch (error) {
      if (signal.aborted) return;
      // Log once per outage; the metric shows how long it lasts.
      if (!this.#failing) {
        this.#deps.log.error('cannot publish the audit head; until it succeeds, the server tries again every 5 s', {
          ...this.#logFields,
          error: describe(error),
        });
      }
      this.#failing = true;
    }
    this.#deps.onUnsigned?.(this.#deps.journal.head.seq - this.#published.seq);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      await this.#publish(signal);
      await sleep(clock, publishEveryMs, signal).catch(() => undefined);
    }
  }

  async #publishIfChanged(options: { signal: AbortSignal }): Promise<void> {
    const { journal, clock, replica } = this.#deps;
    const { head } = journal;
    const signer = this.#currentSigner();
    if (head.seq === 0 || !signer) return;
    if (head.seq === this.#published.seq && signer.publicKey === this.#published.publicKey) {
      if (clock.monotonic() - this.#published.checkedAtMs < recheckMs) return;
      if (await this.#recheck(options)) return;
    }
    const text = JSON.stringify(signer.sign({ ...head, replica, time: formatMicroTime(clock.now()) }));
    const written = await this.#write({ [head.chain]: text }, options);
    this.#published = { seq: head.seq, publicKey: signer.publicKey, text, checkedAtMs: clock.monotonic() };
    await this.#removeSurplus(written, head.chain, options);
  }

  /** Removes entries above `maxHeads`. If that fails, it logs a warning, and the next write of a head tries again. */
  async #removeSurplus(written: KubeObject, ownChain: string, options: { signal: AbortSignal }): Promise<void> {
    const surplus = surplusOf(written, ownChain);
    if (surplus.length === 0) return;
    try {
      await this.#write(Object.fromEntries(surplus.map((chain) => [chain, null])), options);
    } catch (error) {
      if (options.signal.aborted) return;
      this.#deps.log.warn('cannot remove old audit heads; the server tries again when it publishes the next one', {
        ...this.#logFields,
        error: describe(error),
      });
    }
  }

  /** Reads the ConfigMap, and resolves to whether it still has the head. If not, logs a warning. */
  async #recheck(options: { signal: AbortSignal }): Promise<boolean> {
    const { client, journal, clock, log } = this.#deps;
    const found = await findObject(client, configMaps, this.#name, options);
    const isPublished = own(own(found, 'data'), journal.head.chain) === this.#published.text;
    if (isPublished) this.#published = { ...this.#published, checkedAtMs: clock.monotonic() };
    else
      log.warn(
        'the ConfigMap no longer has the audit head that this replica published; the replica publishes it again',
        this.#logFields,
      );
    return isPublished;
  }

  /** Needs no resourceVersion: a process sets only its own entry, and removing an entry twice has no further effect. */
  async #write(data: Readonly<Record<string, string | null>>, options: { signal: AbortSignal }): Promise<KubeObject> {
    return createOrPatchConfigMap(this.#deps.client, this.#name, { data }, options);
  }

  #currentSigner(): HeadSigner | undefined {
    const secret = this.#deps.keys.key;
    if (!secret) return undefined;
    if (this.#cached?.secret !== secret) this.#cached = { secret, signer: new HeadSigner(secret) };
    return this.#cached.signer;
  }

  get #name() {
    const { namespace, name } = this.#deps;
    return { namespace, name };
  }

  get #logFields() {
    return { configMap: keyOf(this.#name), chain: this.#deps.journal.head.chain };
  }
}

/** The entries above the limit: invalid ones first, then the heads signed longest ago; never that of `ownChain`. */
function surplusOf(configMap: KubeObject, ownChain: string): string[] {
  const { heads, unreadable } = readHeads(configMap);
  const oldestFirst = heads.sort((a, b) => a.time.localeCompare(b.time)).map(({ chain }) => chain);
  return [...unreadable, ...oldestFirst]
    .filter((chain) => chain !== ownChain)
    .slice(0, Math.max(0, heads.length + unreadable.length - maxHeads));
}
