import { accessEndMs, type RequestView, viewRequest } from '../access/stores/access-views.ts';
import type { Ended } from '../api/access/ended.ts';
import { accesses, type RequestKind } from '../api/access/kinds.ts';
import { childNameOf } from '../api/access/names.ts';
import type { KubeObject } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import type { Cluster } from '../kube/cluster.ts';
import { STALE_MS, type Store } from '../kube/store.ts';
import { StoreWaits } from '../kube/store-waits.ts';
import type { Refusal } from './answers.ts';
import type { Granted } from './pod-call.ts';
import type { StreamEnd } from './stream-end.ts';

/** A grant whose access is open. */
export interface LiveGrant extends Granted {
  readonly request: { readonly kind: RequestKind; readonly name: string; readonly uid: string };
  /** Epoch ms. */
  readonly endMs: number;
  /** Ends a stream after this time without data. */
  readonly idleAfterMs: number | undefined;
  /** Absent: sessions are not recorded. */
  readonly recording: RecordingTerms | undefined;
}

export interface RecordingTerms {
  /** `Required`: no exec or attach goes on without a recording. `BestEffort`: it does. */
  readonly mode: 'BestEffort' | 'Required';
  /** Also what users type. */
  readonly withInput: boolean;
}

/** How long a call waits for a grant that no watch has reported yet. */
const APPEARANCE_MS = 2_000;
/** Calls that wait at once; further ones are answered without a wait. */
const MAX_WAITING = 256;

/** Its grant has `session.via: Gateway`. */
export interface GatewayRequest extends RequestView {
  readonly kind: RequestKind;
}

/** Index: the namespace and the name of the grant. */
const byGrant = 'grant';

/** One store for each kind of request; only grants with `session.via: Gateway`. */
export function openGrantStores(cluster: Cluster): readonly Store<GatewayRequest>[] {
  return accesses.map(
    ({ request }) =>
      cluster.watch({
        resource: request.resource,
        project: viewGatewayRequest,
        indexes: { [byGrant]: (view: GatewayRequest) => [grantKey(view.namespace, childNameOf(view))] },
      }).store,
  );
}

const viewGatewayRequest = (object: KubeObject): GatewayRequest | undefined => {
  const view = viewRequest(object);
  return view?.grant?.session?.via === 'Gateway' ? { ...view, kind: object.kind as RequestKind } : undefined;
};

const grantKey = (namespace: string, grant: string): string => `${namespace}/${grant}`;

/** The open grants, from the watches of their requests. */
export class LiveGrants {
  readonly #stores: readonly Store<GatewayRequest>[];
  readonly #clock: Clock;
  readonly #waits: StoreWaits;

  constructor(stores: readonly Store<GatewayRequest>[], clock: Clock) {
    this.#stores = stores;
    this.#clock = clock;
    this.#waits = new StoreWaits({ stores, clock, limitMs: APPEARANCE_MS, maxWaiting: MAX_WAITING });
  }

  /** Waits up to 2 s: a requester who saw the request ready may call before the watch shows it. */
  async findOrWait(namespace: string, name: string, signal: AbortSignal): Promise<LiveGrant | Refusal> {
    if (!this.isStale) await this.#waits.until(() => this.#request(namespace, name) !== undefined, signal);
    return this.find(namespace, name);
  }

  /** Refuses with `GatewayNotReady` if stores are missing or stale, or `NoGrant`. */
  find(namespace: string, name: string): LiveGrant | Refusal {
    if (this.isStale) return notReady;
    const request = this.#request(namespace, name);
    const end = this.#endOf(request);
    if (request?.grant && typeof end === 'number') return liveGrantOf(request, request.grant, name, end);
    const found = request && typeof end === 'object' ? `its access has ended: ${end.code}` : 'no request has it';
    const message = `grant ${name} in namespace ${namespace}: ${found}; create a new request, and wait until it is open`;
    return { status: 403, code: 'NoGrant', message };
  }

  /** Why the streams of the grant must end now, or when they must, epoch ms. */
  endOf(namespace: string, name: string): StreamEnd | number {
    if (this.isStale) return { code: 'Unverifiable', atMs: this.#clock.now() };
    return this.#endOf(this.#request(namespace, name));
  }

  /** Reports the grants whose request has changed. Returns the unsubscribe function. */
  subscribe(listener: (namespace: string, name: string) => void): () => void {
    const stops = this.#stores.map((store) =>
      store.subscribe((event) => {
        const view = event.type === 'deleted' ? event.before : event.now;
        listener(view.namespace, childNameOf(view));
      }),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** A revocation could be missing: not synced, or not confirmed for 90 s. */
  get isStale(): boolean {
    return this.#stores.some(({ synced, ageMs }) => !synced || ageMs > STALE_MS);
  }

  #request(namespace: string, name: string): GatewayRequest | undefined {
    const key = grantKey(namespace, name);
    return this.#stores.flatMap((store) => store.byIndex(byGrant, key))[0];
  }

  #endOf(request: GatewayRequest | undefined): StreamEnd | number {
    const nowMs = this.#clock.now();
    if (!request) return { code: 'Deleted', atMs: nowMs };
    if (request.ended) return { code: endCodeOf(request.ended), atMs: nowMs };
    if (request.revoked || request.deleting) return { code: 'Revoked', atMs: nowMs };
    const endMs = accessEndMs(request) ?? 0;
    return nowMs < endMs ? endMs : { code: 'Expired', atMs: endMs };
  }
}

/** If a vote ended the access, `how` is `Revoked`, and only `reason` names the vote. */
const endCodeOf = ({ how, reason }: Ended): StreamEnd['code'] => (reason === 'VoteDenied' ? 'Denied' : how);

function liveGrantOf(
  { namespace, uid, name, kind }: GatewayRequest,
  { subjects, pod, rules = [], session }: NonNullable<RequestView['grant']>,
  grant: string,
  endMs: number,
): LiveGrant {
  const idle = session?.idleAfter === undefined ? undefined : parseGoDuration(session.idleAfter);
  const idleAfterMs = idle && 'ns' in idle ? toMilliseconds(idle.ns) : undefined;
  return {
    namespace,
    name: grant,
    subjects,
    pod: pod.name,
    rules,
    request: { kind, name, uid },
    endMs,
    idleAfterMs,
    recording: session?.record && { mode: session.record, withInput: session.recordInput ?? false },
  };
}

const notReady: Refusal = {
  status: 503,
  code: 'GatewayNotReady',
  message:
    'the gateway has not read the grants, or lost contact with the API server for over 90 s; try again in a few seconds, or tell an administrator: /readyz of the gateway names the cause',
};
