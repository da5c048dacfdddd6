import type { InventoryStage } from './stage.ts';

/** Registers components that each need the output of the previous one; nothing else defines their order. */
export async function registerChain(stage: InventoryStage, names: readonly string[], delayMs: number): Promise<void> {
  for (const [index, name] of [...names.entries()].reverse()) {
    const input = names[index - 1];
    const made = { outcome: 'Done', outputs: { [name]: { value: 1 } } } as const;
    const component = await stage.component(
      name,
      async ({ entry }) => {
        if (input === undefined) return made;
        const { outputs } = (await stage.get(entry.url.split('/').at(-1) ?? '')).content.status;
        if (outputs[input] !== undefined) return made;
        return { outcome: 'NotReady', missing: [{ path: `/status/outputs/${input}/value`, want: 'present' }] };
      },
      input === undefined ? {} : { reads: [`/status/outputs/${input}/value`] },
    );
    component.delayMs = delayMs;
  }
}
