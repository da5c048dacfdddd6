import { gatewayApiService } from '../api/gateway/names.ts';
import { apiVersionOf, type KubeObject, keyOf } from '../api/object.ts';
import { apiServices, configMaps } from '../api/resources.ts';
import { after, done, type Reconciler, type Result } from '../engine/result.ts';
import type { Clock } from '../kit/clock.ts';
import { isRecord, own } from '../kit/json-value.ts';
import type { Client } from '../kube/client.ts';
import { findObject } from '../kube/client.ts';
import type { Store, StoreSpec } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { createOrPatchConfigMap } from './signing/config-map.ts';
import { byNamespace } from './stores/access-stores.ts';
import { type ViewMetadata, viewMetadata } from './stores/access-views.ts';
import type { PodView } from './stores/cluster-views.ts';
import type { GatewayView } from './stores/gateway-view.ts';

// While its APIService exists without a gateway, Kubernetes cannot delete any namespace.
//
//   a gateway is ready ──── none is, for WITHDRAW_MS ───▶ write the record, delete the APIService
//          ▲                                                            │
//          └── create the APIService, clear the record ◀── a gateway is ready
//
// Only what has a record is created again: an APIService that others delete stays deleted.

/** No gateway is ready for this long until its APIService is withdrawn. */
export const WITHDRAW_MS = 120_000;

/** The same if every Pod of the gateway is being deleted. Pods of access stop after 5 s. */
export const SCALED_DOWN_MS = 3_000;

/** The ConfigMap in the server's namespace with the withdrawn APIService. */
export const withdrawalName = 'drawbridge-gateway-withdrawn';
const recordField = 'apiService';

export interface WithdrawalView extends ViewMetadata {
  /** JSON; absent if none is withdrawn. */
  readonly apiService?: string;
}

export const withdrawalSpec = (namespace: string): StoreSpec<WithdrawalView> => ({
  resource: configMaps,
  namespace,
  fieldSelector: `metadata.name=${withdrawalName}`,
  project: (object) => {
    const metadata = viewMetadata(object);
    const apiService = own(own(object, 'data'), recordField);
    return metadata && { ...metadata, ...(typeof apiService === 'string' ? { apiService } : {}) };
  },
});

export const isGatewayPod = ({ namespace, labels }: PodView, serverNamespace: string): boolean =>
  namespace === serverNamespace &&
  labels['app.kubernetes.io/name'] === 'drawbridge' &&
  labels['app.kubernetes.io/component'] === 'gateway';

interface GatewayWithdrawalDeps {
  readonly client: Client;
  readonly pods: Store<PodView>;
  readonly gateway: Store<GatewayView>;
  readonly records: Store<WithdrawalView>;
  readonly namespace: string;
  /** The gateway has the same mode. */
  readonly certificates: 'files' | 'own';
  readonly clock: Clock;
  readonly log: Log;
}

/** Withdraws the APIService of a gateway that is gone, until one is ready. Has one key. */
export class GatewayWithdrawal implements Reconciler {
  readonly #deps: GatewayWithdrawalDeps;
  /** Monotonic milliseconds, in this process. */
  #goneSinceMs: number | undefined;

  constructor(deps: GatewayWithdrawalDeps) {
    this.#deps = deps;
  }

  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const { pods, gateway, namespace, clock } = this.#deps;
    const gateways = pods.byIndex(byNamespace, namespace).filter((pod) => isGatewayPod(pod, namespace));
    const apiService = gateway.get(keyOf({ name: gatewayApiService }));
    // A gateway elsewhere, as in a test, has no Pods here, but the API server reaches it.
    if (gateways.some(({ ready }) => ready) || (gateways.length === 0 && apiService?.available)) {
      this.#goneSinceMs = undefined;
      await this.#restore(apiService !== undefined, signal);
      return done;
    }
    this.#goneSinceMs ??= clock.monotonic();
    if (!apiService) {
      // If a GitOps tool creates it again, it stays for another two minutes.
      this.#goneSinceMs = undefined;
      return done;
    }
    // If all were scaled down, the leader ends soon. Restarted Pods have a successor by then.
    const isScaledDown = gateways.length > 0 && gateways.every(({ deleting }) => deleting);
    const leftMs = this.#goneSinceMs + (isScaledDown ? SCALED_DOWN_MS : WITHDRAW_MS) - clock.monotonic();
    if (leftMs > 0) return after(leftMs);
    await this.#withdraw(signal);
    return done;
  }

  async #withdraw(signal: AbortSignal): Promise<void> {
    const { client, log } = this.#deps;
    const live = await findObject(client, apiServices, { name: gatewayApiService }, { signal });
    if (!live) return;
    const { uid, labels, annotations } = live.metadata;
    if (uid === undefined) return;
    await this.#writeRecord(JSON.stringify({ labels, annotations, spec: live.spec }), signal);
    const deletion = await client.delete(apiServices, { name: gatewayApiService }, { uid, signal });
    if (deletion === 'absent') return this.#writeRecord(null, signal);
    log.warn('no gateway is ready; withdrew its APIService, so that namespaces can be deleted', {
      object: gatewayApiService,
    });
  }

  /** Then clears the record. */
  async #restore(exists: boolean, signal: AbortSignal): Promise<void> {
    const { client, records, namespace, certificates, log } = this.#deps;
    const recorded = records.get(keyOf({ namespace, name: withdrawalName }))?.apiService;
    if (recorded === undefined) return;
    const object = exists ? undefined : readRecord(recorded, certificates === 'own');
    if (object) {
      // As Helm's manager: its next upgrade meets no conflict. RBAC can limit an apply to one name.
      await client.apply(apiServices, object, { fieldManager: 'helm', force: true, signal });
      log.info('a gateway is ready; restored its APIService', { object: gatewayApiService });
    }
    await this.#writeRecord(null, signal);
  }

  async #writeRecord(apiService: string | null, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#deps;
    const data = { [recordField]: apiService };
    await createOrPatchConfigMap(client, { namespace, name: withdrawalName }, { data }, { signal });
  }
}

/** Without an authority, which others write. The policy `drawbridge-apiservice` limits it. */
function readRecord(text: string, gatewayWritesAuthority: boolean): KubeObject | undefined {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    return undefined;
  }
  const recorded = own(record, 'spec');
  if (!isRecord(recorded)) return undefined;
  const texts = (value: unknown): Record<string, string> =>
    Object.fromEntries(
      Object.entries(isRecord(value) ? value : {}).filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string',
      ),
    );
  const annotations = texts(own(record, 'annotations'));
  const { caBundle, ...spec } = recorded;
  const isInjected = gatewayWritesAuthority || own(annotations, 'cert-manager.io/inject-ca-from') !== undefined;
  return {
    apiVersion: apiVersionOf(apiServices),
    kind: apiServices.kind,
    metadata: { name: gatewayApiService, labels: texts(own(record, 'labels')), annotations },
    spec: isInjected || caBundle === undefined ? spec : { ...spec, caBundle },
  };
}
