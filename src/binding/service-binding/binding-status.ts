import type { BindCondition } from '../../api/binding/condition.ts';
import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { type BindFinding, sameConditions, setConditionsAndReady } from '../conditions.ts';
import type { BindingView, GroupResource, PermissionClaim } from '../stores/views.ts';

/** What a binding's status says besides its conditions; a field that is undefined stays as it is. */
export interface BoundStatus {
  readonly providerPrettyName?: string | undefined;
  readonly boundSchemas?: readonly GroupResource[] | undefined;
  readonly permissionClaims?: readonly PermissionClaim[] | undefined;
}

/** The part of the status that has to be written, as a merge patch; undefined when it says everything already. */
export interface StatusPatch {
  conditions?: BindCondition[];
  providerPrettyName?: string | null;
  boundSchemas?: readonly GroupResource[] | null;
  permissionClaims?: readonly PermissionClaim[] | null;
}

export function bindingStatusPatch(
  binding: BindingView,
  findings: readonly BindFinding[],
  bound: BoundStatus,
  nowMs: number,
): StatusPatch | undefined {
  const patch: StatusPatch = {};
  const conditions = setConditionsAndReady(binding.conditions, findings, nowMs);
  if (!sameConditions(binding.conditions, conditions)) patch.conditions = conditions;
  const { providerPrettyName: name, boundSchemas, permissionClaims } = bound;
  if (name !== undefined && name !== (binding.providerPrettyName ?? '')) patch.providerPrettyName = name || null;
  if (boundSchemas && namesOf(boundSchemas) !== namesOf(binding.boundSchemas)) {
    patch.boundSchemas = orNull(boundSchemas.map(({ group, resource }) => ({ group, resource })));
  }
  if (permissionClaims && canonicalJson(permissionClaims) !== canonicalJson(binding.permissionClaims)) {
    patch.permissionClaims = orNull(permissionClaims);
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

const namesOf = (resources: readonly GroupResource[]): string => resources.map(boundSchemaName).sort().join(' ');

/** An empty list is not allowed where there may be none. */
const orNull = <T>(list: readonly T[]): readonly T[] | null => (list.length > 0 ? list : null);
