import { providerKubeconfigLabel } from '../../api/binding/names.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import { nameOf, type Resource } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { configMaps, secrets, serviceAccounts } from '../../api/resources.ts';

interface Exemptible {
  /** `namespace/name` in the consumer. */
  readonly key: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly type: string | undefined;
}

interface ExemptionContext {
  readonly ownNamespaces: ReadonlySet<string>;
  /** Whether a binding or bundle takes its kubeconfig from this Secret (`namespace/name`). */
  isKubeconfig(key: string): boolean;
}

/** Their cluster writes or acts on them: a copy would be overwritten or give access to it. */
const clusterTypes = ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'];

/**
 * Why an object is never copied, even if a claim selects it. The server's own objects are exempt by
 * namespace or label, so that new Secrets with keys are exempt at once. So are provider objects: a
 * provider must not place a Secret where the server reads its keys.
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

/** The labels of any drawbridge installation, or the one that inventory puts on objects. */
const isOfDrawbridge = (labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(ownLabels).every(([label, value]) => labels[label] === value) || labels[entryUidLabel] !== undefined;
