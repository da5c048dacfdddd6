import { inParallel } from '../support/api.ts';
import type { BindingBenchStage } from '../support/binding-stage.ts';

/** Runs `work` while `watchesASide` watches in each cluster follow the unbound objects. */
export async function watched<T>(stage: BindingBenchStage, watchesASide: number, work: () => Promise<T>): Promise<T> {
  const sides = Array.from({ length: watchesASide }, () => [stage.consumer, stage.provider]).flat();
  const watches = sides.map(({ api }) => api.watch(stage.everywhere(stage.unbound), () => undefined));
  const stops = await Promise.all(watches);
  try {
    return await work();
  } finally {
    for (const stop of stops) stop();
  }
}

/**
 * Makes all writes that syncing objects costs, in a konnector's order, with as many open watches as with a konnector. This measures the
 * cost of the two API servers for any client.
 */
export function byHandOf(stage: BindingBenchStage, count: number, prefix: string) {
  const { unbound } = stage;
  const each = (work: (name: string) => Promise<unknown>): Promise<number> =>
    watched(stage, 2, () => inParallel(count, (index) => work(`by-hand-${prefix}${index}`)));
  return {
    up: () =>
      each(async (name) => {
        await stage.create('consumer', unbound, name);
        await stage.create('provider', unbound, name);
        await stage.addFinalizer(unbound, name);
      }),
    down: () =>
      each(async (name) => {
        await stage.report('provider', unbound, name, 'done');
        await stage.report('consumer', unbound, name, 'done');
      }),
    deletes: () =>
      each(async (name) => {
        await stage.remove('consumer', unbound, name);
        await stage.remove('provider', unbound, name);
        await stage.removeFinalizer(unbound, name);
      }),
  };
}
