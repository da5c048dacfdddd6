import type { InventoryStage } from './stage.ts';

export interface Consolidated {
  readonly tookMs: number;
  readonly runs: number;
  /** Maximum number of runs: two, and one for each time that the component could have run meanwhile. */
  readonly allowed: number;
}

/** Writes one entry repeatedly while each run of its component `network` takes `runMs`. Resolves when the last change is Done. */
export async function writesToOneEntry(
  stage: InventoryStage,
  { writes, runMs }: { readonly writes: number; readonly runMs: number },
): Promise<Consolidated> {
  const network = await stage.component('network', () => ({ outcome: 'Done' }));
  network.delayMs = runMs;
  const { ref } = await stage.entry('one');
  await stage.ready('one');
  const before = network.calls.length;
  const began = performance.now();
  for (let i = 0; i < writes; i++) await stage.patch('one', { spec: { components: { network: { config: { i } } } } });
  const tookMs = performance.now() - began;
  await stage.until('the last write to be Done', async () => {
    const [record] = await stage.records();
    return record?.phase === 'Idle' && (await stage.isReady('one'));
  });
  return { tookMs, runs: network.callsFor(ref.uid).length - before, allowed: 2 + tookMs / runMs };
}

/** Number of runs after `writes` writes of a field that no component reads. */
export async function writesOfUnreadField(stage: InventoryStage, writes: number): Promise<number> {
  const network = await stage.component('network', () => ({ outcome: 'Done' }));
  await stage.entry('one');
  await stage.ready('one');
  const before = network.calls.length;
  // Sequential, because concurrent writes of one object delay each other.
  for (let i = 0; i < writes; i++) await stage.patch('one', { spec: { cluster: { field: i } } });
  const called = network.nextCall();
  await stage.patch('one', { spec: { components: { network: { config: { last: true } } } } });
  await called;
  return network.calls.length - before - 1;
}
