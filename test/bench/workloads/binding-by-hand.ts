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
export class ByHand {
  readonly #stage: BindingBenchStage;
  readonly #count: number;
  readonly #prefix: string;

  constructor(stage: BindingBenchStage, count: number, prefix: string) {
    this.#stage = stage;
    this.#count = count;
    this.#prefix = `by-hand-${prefix}`;
  }

  up(): Promise<number> {
    const { unbound } = this.#stage;
    return this.#each(async (name) => {
      await this.#stage.create('consumer', unbound, name);
      await this.#stage.create('provider', unbound, name);
      await this.#stage.addFinalizer(unbound, name);
    });
  }

  down(): Promise<number> {
    const { unbound } = this.#stage;
    return this.#each(async (name) => {
      await this.#stage.report('provider', unbound, name, 'done');
      await this.#stage.report('consumer', unbound, name, 'done');
    });
  }

  deletes(): Promise<number> {
    const { unbound } = this.#stage;
    return this.#each(async (name) => {
      await this.#stage.remove('consumer', unbound, name);
      await this.#stage.remove('provider', unbound, name);
      await this.#stage.removeFinalizer(unbound, name);
    });
  }

  #each(work: (name: string) => Promise<unknown>): Promise<number> {
    const all = (): Promise<number> => inParallel(this.#count, (index) => work(`${this.#prefix}${index}`));
    return watched(this.#stage, 2, all);
  }
}
