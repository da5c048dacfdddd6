import type { GroupResource } from '../../api/binding/group-resource.ts';
import type { Resource } from '../../api/object.ts';
import { configMaps, secrets, serviceAccounts } from '../../api/resources.ts';

/** The resources that a provider may claim, as in kube-bind. */
export const claimableResources: readonly Resource[] = [configMaps, secrets, serviceAccounts];

/** The claimable resource of that group and name; undefined if there is none. */
export function claimable({ group, resource }: GroupResource): Resource | undefined {
  return claimableResources.find((candidate) => candidate.group === group && candidate.plural === resource);
}

/** Formats the name for messages: `secrets`, or `widgets.example.dev`. */
export const formatGroupResource = ({ group, resource }: GroupResource): string =>
  group === '' ? resource : `${resource}.${group}`;
