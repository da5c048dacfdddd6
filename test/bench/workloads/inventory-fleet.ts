import { setTimeout as sleep } from 'node:timers/promises';
import type { InventoryStage } from '../../support/inventory/stage.ts';
import { percentile } from '../../support/percentile.ts';
import { inParallel } from '../support/api.ts';
import type { Figures } from '../support/figures.ts';

export interface FleetWorkload {
  readonly count: number;
  readonly changes: number;
  /** Bytes of free-form content of an entry. */
  readonly size: number;
}

/** Number of entries that the benchmark changes; the others are suspended. All stay until the plane ends. */
const active = 20;

export async function fleetRound(stage: InventoryStage, { count, changes, size }: FleetWorkload): Promise<Figures> {
  // Restarts the server to exclude memory that earlier rounds used.
  await stage.server.stop();
  await stage.server.begin();
  const network = await stage.component('network', () => ({ outcome: 'Done' }), {
    intervalSeconds: 604_800,
    reads: ['/spec/cluster/region'],
  });
  const names = Array.from({ length: active }, (_, i) => `active-${i}`);
  for (const name of names) await stage.entry(name, { components: { network: { config: { n: 0 } } } });
  await stage.ready(...names);
  const emptyMb = await residentMb(stage);
  const cluster = content(size);
  await inParallel(count, async (i) => {
    if (i > 0 && i % 1000 === 0) console.error(`${i} of ${count} entries`);
    await stage.entry(`entry-${i}`, { cluster, suspend: true });
  });
  await stage.until('all entries to have a status', () => isSettled(stage), 15 * 60_000);
  const fullMb = await residentMb(stage);
  const latencies: number[] = [];
  for (let i = 0; i < changes; i++) {
    const name = names[i % names.length] ?? '';
    const called = network.nextCall();
    await stage.patch(name, { spec: { components: { network: { config: { n: i + 1 } } } } });
    const acknowledged = performance.now();
    latencies.push((await called).at - acknowledged);
    await sleep(20);
  }
  return {
    rssEntriesMb: fullMb - emptyMb,
    calledP50Ms: percentile(latencies, 0.5),
    calledP99Ms: percentile(latencies, 0.99),
  };
}

/** True once the queues are empty and the watches silent for 3 s. The API server sends watch events up to seconds after it answers the writes. */
async function isSettled(stage: InventoryStage): Promise<boolean> {
  const text = await stage.server.metrics();
  const [, silentS = '0'] = /^drawbridge_inventory_watch_last_event_age_seconds (\S+)$/m.exec(text) ?? [];
  return !/^workqueue_depth\{.*\} [1-9]/m.test(text) && Number(silentS) > 3;
}

/** The lowest of several samples after garbage collection. */
async function residentMb(stage: InventoryStage): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 10; i++) {
    const [, bytes = '0'] = /^process_resident_memory_bytes (\S+)$/m.exec(await stage.server.metrics()) ?? [];
    least = Math.min(least, Number(bytes) / 1024 / 1024);
    await sleep(300);
  }
  return least;
}

/** Many small fields, like real content. */
function content(size: number): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (let i = 0; JSON.stringify(fields).length < size; i++) {
    fields[`field${i}`] = { name: `value of field ${i}`, labels: { zone: `zone-${i % 3}`, index: i } };
  }
  return fields;
}
