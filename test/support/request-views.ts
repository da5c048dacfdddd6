import type { RequestView } from '../../src/access/stores/access-views.ts';
import type { PodView, SelectorView, WorkloadView } from '../../src/access/stores/cluster-views.ts';
import type { Condition } from '../../src/api/object.ts';

/** 2026-11-21T09:00:00Z, when the requests of unit tests are created. */
export const createdAtMs = Date.UTC(2026, 10, 21, 9, 0, 0);

export const requestView = (over: Partial<RequestView> = {}): RequestView => ({
  key: 'payments/debug',
  uid: 'r-1',
  resourceVersion: '100',
  namespace: 'payments',
  name: 'debug',
  generation: 1,
  createdAtMs,
  isNameGenerated: false,
  deleting: false,
  revoked: false,
  finalizers: ['access.drawbridge.dev/revoke'],
  spec: { templateName: 'payments-shell' },
  grant: undefined,
  ended: undefined,
  state: undefined,
  expiresAt: undefined,
  approval: undefined,
  reasonLink: undefined,
  extensions: [],
  children: [],
  conditions: [],
  ready: false,
  ...over,
});

export const podView = (over: Partial<PodView> = {}): PodView => ({
  key: 'payments/debug-1a2b3c4d-access',
  uid: 'p-1',
  resourceVersion: '1',
  namespace: 'payments',
  name: 'debug-1a2b3c4d-access',
  labels: {},
  annotations: {},
  phase: 'Running',
  ready: true,
  deleting: false,
  nothingToRevoke: false,
  notReadyReason: '',
  ...over,
});

/** A Deployment whose pods have the label app with its name. */
export const workloadView = (name: string, over: Partial<WorkloadView> = {}): WorkloadView => ({
  key: `payments/${name}`,
  uid: 'w-1',
  resourceVersion: '1',
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  namespace: 'payments',
  name,
  selector: { matchLabels: { app: name } },
  podTemplate: {},
  ...over,
});

/** A NetworkPolicy isolates egress. */
export const selectorView = (
  kind: SelectorView['kind'],
  name: string,
  selector: SelectorView['selector'],
): SelectorView => ({
  key: `payments/${name}`,
  uid: name,
  resourceVersion: '1',
  namespace: 'payments',
  kind,
  name,
  selector,
  isolatesEgress: kind === 'NetworkPolicy',
});

export const condition = (type: string, status: Condition['status'], over: Partial<Condition> = {}): Condition => ({
  type,
  status,
  reason: status === 'True' ? 'Success' : 'Because',
  message: `${type} is ${status}`,
  lastTransitionTime: '2026-11-21T09:00:00Z',
  observedGeneration: 1,
  ...over,
});
