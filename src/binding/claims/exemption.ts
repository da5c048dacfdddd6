import { providerKubeconfigLabel } from '../../api/binding/names.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import { nameOf, type Resource } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { configMaps, secrets, serviceAccounts } from '../../api/resources.ts';

/** An object of either side, under its consumer namespace. */
interface Exemptible {
  /** `namespace/name` in the consumer. */
  readonly key: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Type of a Secret; undefined for other kinds. */
  readonly type: string | undefined;
}

/** What an exemption depends on, in addition to the object. */
interface ExemptionContext {
  /** As `BindingDeps.ownNamespaces`. */
  readonly ownNamespaces: ReadonlySet<string>;
  /** Whether a binding or bundle takes its kubeconfig from the consumer's Secret with this key (`namespace/name`). */
  isKubeconfig(key: string): boolean;
}

/** Types of Secrets that their cluster writes or acts on. A copy would be overwritten, deleted, or give access to the other cluster. */
const clusterTypes = ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'];

/**
 * Why the server copies an object in neither direction, even if a claim selects it; undefined if it may copy the object. The server's own
 * objects are exempt by namespace or label, not by name, so that a new Secret with keys is exempt at once. The rules apply to provider
 * objects too: a provider must not place a Secret where the server reads its own keys.
 */
export function exemption(resource: Resource, object: Exemptible, context: ExemptionContext): string | undefined {
  const { key, name, labels, type } = object;
  if (context.ownNamespaces.has(nameOf(key).namespace ?? ''))
    return 'its namespace is for keys of drawbridge or kubeconfigs of providers';
  if (isOfDrawbridge(labels)) return 'it belongs to drawbridge';
  if (resource === configMaps && name === 'kube-root-ca.crt') return 'every namespace has its own';
  if (resource === serviceAccounts && name === 'default') return 'every namespace has its own';
  if (resource !== secrets) return undefined;
  if (clusterTypes.includes(type ?? '')) return 'it is a credential of its own cluster';
  const isProviderKubeconfig = labels[providerKubeconfigLabel] !== undefined || context.isKubeconfig(key);
  return isProviderKubeconfig ? 'it contains the kubeconfig of a provider' : undefined;
}

/** Whether the labels are those of any drawbridge installation, or the one by which inventory and its components mark objects. */
const isOfDrawbridge = (labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(ownLabels).every(([label, value]) => labels[label] === value) || labels[entryUidLabel] !== undefined;
