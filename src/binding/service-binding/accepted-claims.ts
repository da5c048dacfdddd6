import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { claimableAnnotation } from '../../api/binding/names.ts';
import { quote } from '../../kit/errors.ts';
import { claimable, claimableResources } from '../claims/claimable.ts';
import type { BindingView, ExportView, PermissionClaim } from '../stores/views.ts';

/** What a binding makes of the claims of its export. */
export interface JudgedClaims {
  readonly accepted: readonly PermissionClaim[];
  /** Names of what may be claimed nowhere. What the binding itself does not allow is no fault of the claim. */
  readonly refused: readonly string[];
  /** What is wrong with the binding's own list; nothing is accepted then. */
  readonly problem?: string;
}

const all = claimableResources.map(({ plural }) => plural);

export function judgeClaims({ permissionClaims }: ExportView, { annotations }: BindingView): JudgedClaims {
  const allowed = annotations[claimableAnnotation]?.split(',').flatMap((name) => name.trim() || []) ?? all;
  const odd = allowed.find((name) => !all.includes(name));
  const accepted = permissionClaims.filter((claim) => allowed.includes(claimable(claim)?.plural ?? ''));
  const refused = permissionClaims.filter((claim) => !claimable(claim)).map(boundSchemaName);
  if (odd === undefined) return { accepted, refused };
  const problem = `the annotation ${claimableAnnotation} names ${quote(odd)}, so nothing that the provider claims is shared; it takes a list, which may be empty, of ${all.join(', ')}`;
  return { accepted: [], refused, problem };
}
