import { apiVersionOf, type KubeObject, type ObjectMeta } from '../api/object.ts';
import { roles } from '../api/resources.ts';

/** rbac/v1 PolicyRule for resources. An empty `resourceNames` would mean every name, so it is absent or filled, never empty. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly [string, ...string[]];
}

/** A namespaced Role; metadata is taken as it is. */
export function roleOf(metadata: ObjectMeta, rules: readonly PolicyRule[]): KubeObject {
  return { apiVersion: apiVersionOf(roles), kind: roles.kind, metadata, rules };
}
