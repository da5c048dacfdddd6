import type { Controller } from '../../engine/controller.ts';
import { backoffMs } from '../../kit/backoff.ts';
import { type Cancel, type Clock, sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { ApiError } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { RunningControllers } from '../deps.ts';
import type { OpenedStores } from '../stores/open-stores.ts';
import { openProviderStores, type ProviderStores } from '../stores/provider-stores.ts';
import { refusedWatch } from '../sync-engine/refused-watches.ts';
import type { RefusedWatch } from '../sync-engine/syncer.ts';
import type { Kubeconfig } from './kubeconfig.ts';
import type { ProviderSession, SessionState } from './provider-session.ts';

export interface SessionOptions {
  readonly connect: (credentials: Credentials) => Cluster;
  /** Makes a client that writes only while this replica leads. */
  readonly writeClient: (client: Client) => Client;
  /** Controllers that they add through `runningControllers` also end with the session. */
  readonly controllers: (session: OpenSession, runningControllers: RunningControllers) => readonly Controller[];
  readonly runningControllers: RunningControllers;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
  /** The state, the refused watches, or the uid of the cluster namespace has changed. */
  readonly onChange: (session: OpenSession) => void;
}

/** After this, a session whose stores are not synced becomes `unreachable`. */
export const unreachableMs = 150_000;

/** Between reads of the cluster namespace's uid. */
const identityBackoff = { baseMs: 1000, capMs: 30_000 };
/** After a 403 on the namespace: permissions seldom change. */
const forbiddenRetryMs = 5 * 60_000;

export class OpenSession implements ProviderSession {
  readonly id: string;
  readonly server: string;
  readonly clusterNamespace: string;
  readonly cluster: Cluster;
  readonly client: Client;
  readonly stores: ProviderStores;
  readonly #options: SessionOptions;
  readonly #log: Log;
  readonly #opened: OpenedStores<ProviderStores>;
  readonly #ended = new AbortController();
  readonly #running = new Set<Controller>();
  readonly #cancelTimer: Cancel;
  #state: SessionState = { kind: 'connecting' };
  #uid: string | undefined;
  /** Of the last read of the cluster namespace; a 403 does not change it. */
  #lastError: string | undefined;
  #started = false;

  constructor({ id, credentials, namespace }: Kubeconfig, options: SessionOptions) {
    this.id = id;
    this.server = credentials.server;
    this.clusterNamespace = namespace;
    this.#options = options;
    this.#log = options.log.child({ session: id });
    this.cluster = options.connect(credentials);
    this.client = options.writeClient(this.cluster.client);
    this.#opened = openProviderStores(this.cluster, namespace, this.#log);
    this.stores = this.#opened.stores;
    this.#opened.whenSynced(this.#ended.signal).then(
      () => this.#setState({ kind: 'synced' }),
      () => undefined,
    );
    for (const store of this.#opened.all) store.onRefusal(() => options.onChange(this));
    this.#cancelTimer = options.clock.schedule(unreachableMs, () => this.#onSyncTimeout());
    void this.#readIdentity();
    this.#log.info('the session with a provider has been opened', { server: this.server, clusterNamespace: namespace });
  }

  get state(): SessionState {
    return this.#state;
  }

  refusedWatches(): readonly RefusedWatch[] {
    return this.#opened.all.flatMap((store) => refusedWatch('provider', store.resource, store) ?? []);
  }

  get clusterNamespaceUid(): string | undefined {
    return this.#uid;
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#opened.whenSynced(signal);
  }

  start(): void {
    if (this.#started || this.#ended.signal.aborted) return;
    this.#started = true;
    const { add, remove } = this.#controllers();
    for (const controller of this.#options.controllers(this, { add, remove })) add(controller);
  }

  /** Waits for the last reconciles. `start` may start the controllers again. */
  async stop(): Promise<void> {
    this.#started = false;
    const { remove } = this.#controllers();
    // A controller may add others until its last reconcile has settled.
    while (this.#running.size > 0) await Promise.all([...this.#running].map(remove));
  }

  /** Idempotent; only the first call waits for the end. */
  async close(): Promise<void> {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(new Error('the session has ended'));
    this.#cancelTimer();
    await this.stop();
    this.#opened.release();
    await this.cluster.close();
    this.#log.info('the session with a provider has been closed', {
      server: this.server,
      clusterNamespace: this.clusterNamespace,
    });
  }

  #controllers(): RunningControllers {
    return {
      add: (controller) => {
        this.#running.add(controller);
        this.#options.runningControllers.add(controller);
      },
      remove: async (controller) => {
        await this.#options.runningControllers.remove(controller);
        this.#running.delete(controller);
      },
    };
  }

  #setState(state: SessionState): void {
    if (this.#ended.signal.aborted) return;
    this.#state = state;
    if (state.kind !== 'connecting') this.#cancelTimer();
    this.#log.info('the session with a provider has changed its state', state);
    this.#options.onChange(this);
  }

  /** Of state `connecting`: reports a failing kubeconfig long before `unreachable`. */
  #setProblem(problem: string | undefined): void {
    if (this.#state.kind !== 'connecting' || this.#state.problem === problem) return;
    this.#setState(problem === undefined ? { kind: 'connecting' } : { kind: 'connecting', problem });
  }

  #onSyncTimeout(): void {
    const unsynced = this.#opened.all.filter(({ synced }) => !synced);
    if (unsynced.length === 0) return;
    const names = unsynced.map(({ resource }) => resource.plural).join(', ');
    const message = `Informers did not sync within 2m30s: ${this.server} has not listed ${names}`;
    const why = this.#lastError ?? unsynced.find(({ failing }) => failing)?.failing?.reason;
    this.#setState({ kind: 'unreachable', message: why === undefined ? message : `${message}: ${why}` });
  }

  /** Retries until it succeeds or the session ends. Never rejects. */
  async #readIdentity(): Promise<void> {
    const { clock, random = Math.random } = this.#options;
    for (let attempt = 0; !this.#ended.signal.aborted; attempt++) {
      try {
        const uid = await this.cluster.identity(this.clusterNamespace);
        if (this.#ended.signal.aborted) return;
        this.#uid = uid;
        this.#lastError = undefined;
        this.#setProblem(undefined);
        this.#options.onChange(this);
        return;
      } catch (error) {
        const forbidden = error instanceof ApiError && error.code === 403;
        this.#lastError = forbidden ? this.#lastError : describe(error);
        // One failure may be transient.
        if (attempt > 0) this.#setProblem(this.#lastError);
        const delayMs = forbidden ? forbiddenRetryMs : backoffMs({ ...identityBackoff, attempt, random });
        await sleep(clock, delayMs, this.#ended.signal).catch(() => undefined);
      }
    }
  }
}
