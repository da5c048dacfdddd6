import type { BindingDeps } from '../../../src/binding/deps.ts';
import { openConsumerStores } from '../../../src/binding/stores/consumer-stores.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import type { SimulatedClock } from '../simulated-clock.ts';
import type { MemoryCluster } from './memory-cluster.ts';

/** What controllers need. By default, nothing is logged or recorded, and no controller is run. */
export function depsOf(consumer: MemoryCluster, clock: SimulatedClock, fields: Partial<BindingDeps> = {}): BindingDeps {
  return {
    consumer,
    client: consumer.client,
    stores: fields.stores ?? openConsumerStores(consumer).stores,
    ownNamespaces: new Set(),
    events: { record() {}, close: () => Promise.resolve() },
    clock,
    log: noLog,
    metrics: createMetrics(),
    runningControllers: { add() {}, remove: () => Promise.resolve() },
    ...fields,
  };
}
