import type { GroupResource } from '../../api/binding/group-resource.ts';
import type { Resource } from '../../api/object.ts';
import { configMaps, secrets, serviceAccounts } from '../../api/resources.ts';

/** The resources that a provider may claim, as in kube-bind. */
export const claimableResources: readonly Resource[] = [configMaps, secrets, serviceAccounts];

export function claimable({ group, resource }: GroupResource): Resource | undefined {
  return claimableResources.find((candidate) => candidate.group === group && candidate.plural === resource);
}

/** For messages: `secrets`, or `widgets.example.dev`. */
export const formatGroupResource = ({ group, resource }: GroupResource): string =>
  group === '' ? resource : `${resource}.${group}`;
