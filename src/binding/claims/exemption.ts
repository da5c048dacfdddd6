import { providerKubeconfigLabel } from '../../api/binding/names.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import { nameOf, type Resource } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { configMaps, secrets, serviceAccounts } from '../../api/resources.ts';

/** An object of either side, seen under its consumer namespace. */
interface Exemptible {
  /** `namespace/name` in the consumer. */
  readonly key: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Of Secrets. */
  readonly type: string | undefined;
}

/** What an exemption depends on besides the object. */
interface Home {
  /** The consumer's namespaces in which this program keeps its keys and finds those to providers. */
  readonly ownNamespaces: ReadonlySet<string>;
  /** Whether a binding takes its kubeconfig from the Secret with this key of the consumer. */
  isKubeconfig(key: string): boolean;
}

/** Their cluster fills them in or acts on them: a copy would be fought over, deleted at once, or be a key to the other cluster. */
const clusterTypes = ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'];

/**
 * Why an object is never copied in either direction, whatever selects it; undefined for all others. What is ours is told by its place
 * or its labels and not by its name, so that a new key is exempt from the start. The provider's objects are judged like the
 * consumer's: a provider must not put a key where this program looks for its own.
 */
export function exemption(resource: Resource, object: Exemptible, home: Home): string | undefined {
  const { key, name, labels, type } = object;
  if (home.ownNamespaces.has(nameOf(key).namespace ?? '')) return 'its namespace holds the keys of this program';
  if (isOurs(labels)) return 'it belongs to this program';
  if (resource === configMaps && name === 'kube-root-ca.crt') return 'every namespace has its own';
  if (resource === serviceAccounts && name === 'default') return 'every namespace has its own';
  if (resource !== secrets) return undefined;
  if (clusterTypes.includes(type ?? '')) return 'it is a credential that its own cluster keeps';
  const isProviders = labels[providerKubeconfigLabel] !== undefined || home.isKubeconfig(key);
  return isProviders ? 'it holds the kubeconfig of a provider' : undefined;
}

/** Also of another installation in the cluster; the second label is on kubeconfigs and accounts of inventory entries. */
const isOurs = (labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(ownLabels).every(([label, value]) => labels[label] === value) || labels[entryUidLabel] !== undefined;
