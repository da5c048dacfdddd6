import type { InventoryStage } from './stage.ts';

export interface KilledInFlight {
  /** Milliseconds from the start of the new server until every entry is Ready. */
  readonly backMs: number;
  readonly runs: number;
  /** IDs of all called runs, in order. */
  readonly called: readonly string[];
}

const components = ['a', 'b', 'c', 'd', 'e'];

/** Kills the server during runs of all components for all entries, and restarts it. */
export async function killInFlight(stage: InventoryStage, entries: number): Promise<KilledInFlight> {
  const servers = await Promise.all(
    components.map((name) =>
      stage.component(name, () => ({ outcome: 'Done', outputs: { [name]: { done: true } } }), {
        maxConcurrent: entries,
        timeoutSeconds: 30,
      }),
    ),
  );
  for (const server of servers) server.delayMs = 20_000;
  const names = Array.from({ length: entries }, (_, i) => `e${i}`);
  await Promise.all(names.map((name) => stage.entry(name)));
  const calls = () => servers.flatMap((server) => server.calls);
  const runs = entries * components.length;
  await stage.until(`${runs} runs to be in flight`, () => calls().length === runs);
  await stage.server.stop('SIGKILL');
  for (const server of servers) server.delayMs = 20;
  const began = performance.now();
  await stage.server.begin();
  await stage.ready(...names);
  const backMs = performance.now() - began;
  return { backMs, runs, called: calls().map(({ request }) => request.run.id) };
}
