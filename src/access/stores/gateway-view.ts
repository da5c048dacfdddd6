import { gatewayApiService } from '../../api/gateway/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { apiServices } from '../../api/resources.ts';
import { listIn, own } from '../../kit/json-value.ts';
import type { Projected, Store, StoreSpec } from '../../kube/store.ts';
import type { Violation } from '../policy/policy.ts';

export interface GatewayView extends Projected {
  /** Whether the API server forwards calls to the gateway. */
  readonly available: boolean;
  /** Of its condition Available, such as `FailedDiscoveryCheck`. */
  readonly reason: string;
}

export const gatewaySpec: StoreSpec<GatewayView> = {
  resource: apiServices,
  fieldSelector: `metadata.name=${gatewayApiService}`,
  project: viewGateway,
  // Direct access must open even if the API server serves no APIServices.
  optional: true,
};

function viewGateway({ metadata, status }: KubeObject): GatewayView | undefined {
  const { name, uid, resourceVersion } = metadata;
  if (name !== gatewayApiService || !uid || !resourceVersion) return undefined;
  const condition = listIn(status, 'conditions').find((one) => own(one, 'type') === 'Available');
  const reason = own(condition, 'reason');
  return {
    key: keyOf(metadata),
    uid,
    resourceVersion,
    available: own(condition, 'status') === 'True',
    reason: typeof reason === 'string' ? reason.slice(0, 128) : '',
  };
}

/** `GatewayUnavailable` unless the API server forwards calls to the gateway. */
export function gatewayViolation(store: Pick<Store<GatewayView>, 'get'>): Violation | undefined {
  const gateway = store.get(keyOf({ name: gatewayApiService }));
  if (gateway?.available) return undefined;
  const found = gateway ? `is not Available (${gateway.reason || 'no reason yet'})` : 'does not exist';
  const remedy = gateway
    ? `see why with kubectl describe apiservice ${gatewayApiService}`
    : 'ask an administrator to install the gateway with the chart, or to see why none of its Pods is ready';
  return {
    code: 'GatewayUnavailable',
    message:
      `APIService ${gatewayApiService} ${found}, and session.via Gateway needs it; ${remedy}, ` +
      'or set session.via to Direct (then the gateway neither records nor ends sessions); the template becomes ready when the gateway is Available',
    field: 'spec.accessConfig.session.via',
    status: 404,
  };
}
