import type { GroupResource } from '../../api/binding/group-resource.ts';
import { providerKubeconfigLabel } from '../../api/binding/names.ts';
import type { Resource } from '../../api/object.ts';
import { configMaps, secrets, serviceAccounts } from '../../api/resources.ts';

/** All that a provider may claim; konnectors and backends of every make agree on this list. */
export const claimableResources: readonly Resource[] = [configMaps, secrets, serviceAccounts];

export function claimable({ group, resource }: GroupResource): Resource | undefined {
  return claimableResources.find((one) => one.group === group && one.plural === resource);
}

/** `secrets`, or `widgets.example.dev`. */
export const formatGroupResource = ({ group, resource }: GroupResource): string =>
  group === '' ? resource : `${resource}.${group}`;

interface Exemptible {
  readonly key: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly type: string | undefined;
}

/** Their cluster fills them in or acts on them: a copy would be fought over, deleted at once, or be a key to the other cluster. */
const clusterTypes = ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'];

/**
 * Why an object is never copied in either direction, whatever selects it; undefined for all others. `isKubeconfig` tells of a
 * key of the consumer whether a binding takes its kubeconfig from there: those are credentials for other providers as well.
 */
export function exemption(
  resource: Resource,
  object: Exemptible,
  isKubeconfig: (key: string) => boolean,
): string | undefined {
  if (resource === configMaps && object.name === 'kube-root-ca.crt') return 'every namespace has its own';
  if (resource === serviceAccounts && object.name === 'default') return 'every namespace has its own';
  if (resource !== secrets) return undefined;
  if (clusterTypes.includes(object.type ?? '')) return 'it is a credential that its own cluster keeps';
  const isProviders = object.labels[providerKubeconfigLabel] !== undefined || isKubeconfig(object.key);
  return isProviders ? 'it holds the kubeconfig of a provider' : undefined;
}
