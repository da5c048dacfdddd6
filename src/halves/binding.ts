import pkg from '../../package.json' with { type: 'json' };
import type { KonnectorDeps } from '../binding/controllers.ts';
import { dryRunClient } from '../binding/dry-run.ts';
import { openConsumerStores } from '../binding/stores/consumer-stores.ts';
import type { Manager } from '../engine/manager.ts';
import type { Client } from '../kube/client.ts';
import { openCluster } from '../kube/open-cluster.ts';
import { clock, type Half, type Host, leadership, recorder, storesProblem } from './host.ts';

export interface BindingHalf extends Half {
  readonly loops: KonnectorDeps;
}

/** Connections for calls to one provider; each watch has one of its own besides. */
const providerConnections = 32;

/** Opens what the konnector needs. It answers no webhooks and needs no certificate. */
export function openBinding(host: Host, manager: Manager): BindingHalf {
  const { config, cluster, health, metrics, log } = host;
  const { gate, guard: fence } = leadership(host, config.bindingLease);
  const guard = config.dryRun ? (real: Client): Client => dryRunClient(real, log) : fence;
  const client = guard(cluster.client);
  const opened = openConsumerStores(cluster, log);
  const events = recorder(host, 'binding', client);
  health.ready('binding-stores', () => storesProblem(opened.all));
  return {
    gate,
    ports: {},
    loops: {
      consumer: cluster,
      client,
      stores: opened.stores,
      events,
      clock,
      log,
      metrics,
      running: {
        add: (controller) => manager.add(controller, gate),
        remove: (controller) => manager.remove(controller),
      },
      connect: (credentials) => openCluster(credentials, { clock, log, connections: providerConnections }),
      guard,
      dryRun: config.dryRun,
      version: pkg.version,
      pollingMs: config.pollingMs,
      allowed: config.bindable,
      allowedNamespaces: config.bindableNamespaces,
    },
    close: {
      bindingEvents: () => events.close(),
      bindingStores: () => opened.release(),
    },
  };
}
