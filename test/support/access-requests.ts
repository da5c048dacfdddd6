import type { ApiAnswer } from '../../sandbox/api-call.ts';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import type { Ended } from '../../src/api/access/ended.ts';
import { requestLabel } from '../../src/api/access/names.ts';
import type { Condition } from '../../src/api/object.ts';

/** A manifest as a user would write it. */
export interface Manifest {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly metadata: { readonly name?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

/** A request or template from the API; the fields that tests read. */
export interface StoredRequest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly generation?: number;
    readonly resourceVersion?: string;
    readonly finalizers?: readonly string[];
    readonly ownerReferences?: readonly unknown[];
    readonly deletionTimestamp?: string;
  };
  readonly spec?: {
    readonly requester?: { readonly username: string; readonly groups: readonly string[] };
    readonly [field: string]: unknown;
  };
  readonly status?: {
    readonly ready?: boolean;
    readonly podName?: string;
    readonly expiresAt?: string;
    readonly accessMessage?: string;
    readonly ended?: Ended;
    readonly approval?: { readonly state: string; readonly due?: string };
    readonly extensions?: readonly { readonly state: string; readonly expiresAt?: string }[];
    readonly conditions?: readonly Condition[];
    readonly grant?: {
      readonly expiresAt: string;
      readonly pod: { readonly name: string; readonly uid?: string };
      readonly planHash: string;
      readonly [field: string]: unknown;
    };
  };
}

export interface Child {
  readonly kind: string;
  readonly name: string;
}

const request = (kind: string, name: string, spec: object): Manifest => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind,
  metadata: { name },
  spec,
});

export const podRequest = (name: string, spec: object = {}): Manifest =>
  request('PodAccessRequest', name, { templateName: 'payments-shell', ...spec });

export const execRequest = (name: string, spec: object = {}): Manifest =>
  request('ExecAccessRequest', name, { templateName: 'payments-exec', ...spec });

export function accessUrl(kind: string, namespace: string, name = ''): string {
  const collection = `/apis/crds.wizardofoz.co/v1alpha1/namespaces/${namespace}/${kind.toLowerCase()}s`;
  return name === '' ? collection : `${collection}/${name}`;
}

/**
 * Repeats a call until a webhook answers it: the API server waits 3 s for a webhook, and on a busy machine some of dozens of calls at once
 * may take longer.
 */
export async function reviewed(call: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
  for (;;) {
    const answer = await call();
    if (answer.status !== 500 || !/failed calling webhook .*(deadline|timeout)/i.test(JSON.stringify(answer.body)))
      return answer;
  }
}

export const conditionOf = ({ status }: StoredRequest, type: string): Condition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);

/** Epoch ms at which the grant ends. */
export const deadlineOf = ({ status }: StoredRequest): number => Date.parse(status?.grant?.expiresAt ?? '');

export async function childrenOf(plane: PlaneClient, namespace: string, uid: string): Promise<Child[]> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const lists = [
    ['Pod', `/api/v1/namespaces/${namespace}/pods`],
    ['Role', `${rbac}/roles`],
    ['RoleBinding', `${rbac}/rolebindings`],
  ] as const;
  const found = lists.map(async ([kind, url]) => {
    const { body } = await plane.probe(`${url}?labelSelector=${encodeURIComponent(`${requestLabel}=${uid}`)}`);
    return (body as { items: { metadata: { name: string } }[] }).items.map(({ metadata: { name } }) => ({
      kind,
      name,
    }));
  });
  return (await Promise.all(found)).flat();
}
