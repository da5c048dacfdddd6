/** One served resource, as in `/apis/<group>/<version>/…/<plural>`. The core group is the empty string. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: unknown[];
}

/** An object as the API gives it. Kinds that we own have their own types in api/; everything else is read through guards. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec?: unknown;
  status?: unknown;
  [field: string]: unknown;
}

/** Where an object lives; `namespace` is absent for cluster-scoped kinds. */
export interface ObjectName {
  readonly namespace?: string;
  readonly name: string;
}

/** `namespace/name`, or `name` alone for cluster-scoped objects: the key form of stores and queues. */
export function keyOf(name: ObjectName): string {
  return name.namespace ? `${name.namespace}/${name.name}` : name.name;
}

export function nameOf(key: string): ObjectName {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** metav1.Condition. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

/** metav1.LabelSelector: the empty selector matches everything, an absent one nothing. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf(resource: Resource): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}
