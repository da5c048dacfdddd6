import { type DesiredObject, ensure, remove, withCluster } from './cluster-objects.ts';
import { type ComponentsDeps, configOf, notReadyUnlessPresent, textAt } from './inputs.ts';
import { textIn } from './kubeconfig.ts';
import {
  type Component,
  entryUidLabel,
  kubeconfigOutput,
  kubeconfigSecretName,
  type Outcome,
  type RunContext,
} from './sdk/contract.ts';
import {
  deployments,
  findObject,
  isNotFound,
  type KubeClient,
  type KubeObject,
  namespaces,
  type Resource,
} from './sdk/kubernetes.ts';
import { own, valueAt } from './sdk/values.ts';

/** With these, users of a managed cluster request services. */
export const serviceInstances: Resource = {
  group: 'services.cloud.sap.com',
  version: 'v1',
  plural: 'serviceinstances',
  kind: 'ServiceInstance',
  namespaced: true,
};

const name = 'connectivity-proxy';
const kubeconfigVersionPath = `${kubeconfigOutput}/version` as const;
const defaultImage = 'registry.k8s.io/pause:3.10';
/** `spec.serviceOfferingName` of ServiceInstances that need the proxy. */
const offering = 'connectivity';

/**
 * Runs a proxy in the managed cluster while ServiceInstances there request connectivity. Publishes
 * their number as `instances`.
 */
export function connectivityProxyComponent(deps: ComponentsDeps): Component {
  return {
    name,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      const isDelete = run.request.operation === 'delete';
      // Without a kubeconfig, nothing is installed or the cluster is out of reach.
      if (isDelete && valueAt(entry, kubeconfigVersionPath) === undefined) return { outcome: 'Deleted' };
      const notReady = notReadyUnlessPresent(entry, kubeconfigVersionPath);
      if (notReady) return notReady;
      const kubeconfig = textIn(await run.entry.kubeconfig());
      if (kubeconfig === undefined)
        return {
          outcome: 'Retry',
          message: `Secret ${kubeconfigSecretName(run.request.entry.id)} contains no kubeconfig; the component that produces the kubeconfig must write it`,
        };
      return withCluster(deps, run, kubeconfig, (client, signal) =>
        isDelete ? uninstall(client, run, signal) : reconcileProxy(client, run, entry, signal),
      );
    },
  };
}

async function reconcileProxy(
  client: KubeClient,
  run: RunContext,
  entry: KubeObject,
  signal: AbortSignal,
): Promise<Outcome> {
  const instances = await instancesIn(client, signal);
  const deployment = deploymentOf(run, entry, instances);
  if (instances.length === 0) await remove(client, deployment, signal);
  else await install(client, deployment, signal);
  return { outcome: 'Done', outputs: { [name]: { instances: instances.length } } };
}

async function uninstall(client: KubeClient, run: RunContext, signal: AbortSignal): Promise<Outcome> {
  const deployment = deploymentOf(run, undefined, []);
  await remove(client, deployment, signal);
  const namespace = namespaceOf(deployment);
  const found = await findObject(client, namespaces, namespace, { signal });
  // A namespace that existed before, or belongs to another entry, stays.
  if (found?.metadata.labels?.[entryUidLabel] === run.request.entry.id) {
    await remove(client, { ...deployment, resource: namespaces, name: namespace }, signal);
  }
  return { outcome: 'Deleted' };
}

async function instancesIn(client: KubeClient, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const { items } = await client.list(serviceInstances, { signal });
    return items
      .filter(({ spec }) => own(spec, 'serviceOfferingName') === offering)
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
      .sort();
  } catch (error) {
    // The cluster may not have the kind ServiceInstance.
    if (isNotFound(error)) return [];
    throw error;
  }
}

async function install(client: KubeClient, deployment: DesiredObject, signal: AbortSignal): Promise<void> {
  const namespace = namespaceOf(deployment);
  if (!(await findObject(client, namespaces, namespace, { signal }))) {
    await ensure(client, { ...deployment, resource: namespaces, name: namespace, content: {} }, signal);
  }
  await ensure(client, deployment, signal);
}

const namespaceOf = ({ name }: DesiredObject) => ({ name: name.namespace ?? '' });

function deploymentOf(
  { request }: RunContext,
  entry: KubeObject | undefined,
  instances: readonly string[],
): DesiredObject {
  const labels = { 'app.kubernetes.io/name': name };
  const env = [{ name: 'INSTANCES', value: instances.join(',') }];
  const image = textAt(entry, configOf(name, 'image')) ?? defaultImage;
  return {
    resource: deployments,
    name: { namespace: name, name },
    entryUid: request.entry.id,
    content: {
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'proxy', image, env }] } },
      },
    },
  };
}
