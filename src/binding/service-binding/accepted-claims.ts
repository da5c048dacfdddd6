import { boundSchemaName } from '../../api/binding/group-resource.ts';
import type { ExportView, GroupResource, PermissionClaim } from '../stores/views.ts';

/** All that may be claimed; konnectors and backends of every make agree on this list. */
const claimable: readonly string[] = ['configmaps.core', 'secrets.core', 'serviceaccounts.core'];

const isClaimable = (claim: GroupResource): boolean => claimable.includes(boundSchemaName(claim));

export function acceptedClaims({ permissionClaims }: ExportView): PermissionClaim[] {
  return permissionClaims.filter(isClaimable);
}

/** Names of what is claimed and not shared. */
export function refusedClaims({ permissionClaims }: ExportView): string[] {
  return permissionClaims.filter((claim) => !isClaimable(claim)).map(boundSchemaName);
}
