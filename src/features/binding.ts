import pkg from '../../package.json' with { type: 'json' };
import { kubeconfigNamespace } from '../api/binding/names.ts';
import { bindingControllers } from '../binding/controllers.ts';
import { dryRunClient } from '../binding/dry-run.ts';
import { openConsumerStores } from '../binding/stores/consumer-stores.ts';
import type { Client } from '../kube/client.ts';
import { openCluster } from '../kube/open-cluster.ts';
import {
  clock,
  countedWatches,
  type Feature,
  type Host,
  leadership,
  type OpenFeature,
  recorder,
  storesProblem,
} from './feature.ts';

/** Quick calls to one provider. Slow and urgent calls, and each watch, have additional ones. */
const providerConnections = 32;

/**
 * Binds APIs of provider clusters into this one. Each session with a provider adds its controllers.
 */
export const binding: Feature = {
  name: 'binding',
  connections: 32,
  servesHttps: false,
  readFiles: () => open,
};

function open(host: Host): OpenFeature {
  const { config, cluster, metrics, watchRefusals, log, manager } = host;
  const { leaseName: name, leaseNamespace, bindingLeaseNamespace: namespace } = config;
  const { gate, leaderOnly } = leadership(host, { namespace, name });
  const writeClient = config.dryRun ? (real: Client): Client => dryRunClient(real, log) : leaderOnly;
  const client = writeClient(cluster.client);
  const opened = openConsumerStores(cluster, log);
  const events = recorder(host, 'binding', client);
  return {
    gate,
    controllers: bindingControllers({
      consumer: cluster,
      client,
      stores: opened.stores,
      ownNamespaces: new Set([leaseNamespace, namespace, kubeconfigNamespace]),
      events,
      clock,
      log,
      metrics,
      runningControllers: {
        add: (controller) => manager.add(controller, gate),
        remove: (controller) => manager.remove(controller),
      },
      connect: (credentials) =>
        openCluster(credentials, {
          clock,
          log: log.child({ server: credentials.server }),
          connections: providerConnections,
          watches: { ...countedWatches('provider', watchRefusals), probe: true },
        }),
      writeClient,
      dryRun: config.dryRun,
      version: pkg.version,
      pollingMs: config.providerPollingInterval,
      bindable: config.bindable,
      bindableNamespaces: config.bindableNamespaces,
    }),
    readiness: { 'binding-stores': () => storesProblem(opened.all) },
    close: {
      bindingEvents: () => events.close(),
      bindingStores: () => opened.release(),
    },
  };
}
