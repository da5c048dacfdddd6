import { apiServiceBindings, bindGroup } from '../../api/binding/names.ts';
import { apiVersionOf, type OwnerReference } from '../../api/object.ts';

interface Binding {
  readonly name: string;
  readonly uid: string;
}

export function ownerReferenceOf({ name, uid }: Binding): OwnerReference {
  return { apiVersion: apiVersionOf(apiServiceBindings), kind: apiServiceBindings.kind, name, uid, controller: true };
}

/** In any API version. */
export function isOwnedBy(owners: readonly OwnerReference[] | undefined, { name, uid }: Binding): boolean {
  return (owners ?? []).some((owner) => isBinding(owner) && owner.name === name && owner.uid === uid);
}

export function owningBindings(owners: readonly OwnerReference[]): string[] {
  return owners.filter(isBinding).map(({ name }) => name);
}

function isBinding({ apiVersion, kind }: OwnerReference): boolean {
  return kind === apiServiceBindings.kind && apiVersion.startsWith(`${bindGroup}/`);
}
