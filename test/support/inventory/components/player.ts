import type { Component } from '../../../../examples/inventory/components/sdk/contract.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';

/** The TypeScript counterpart of player.py and player.sh. `config.play` of the entry selects its behavior. */
export const player = (name: string): Component => ({
  name,
  async reconcile(run) {
    const { request, entry } = run;
    if (request.operation === 'delete') return { outcome: 'Deleted' };
    const config = valueAt(await entry.get(), `/spec/components/${name}/config`);
    const outputs = { [name]: { seen: valueAt(config, '/value') } };
    switch (valueAt(config, '/play')) {
      case 'notReady':
        return { outcome: 'NotReady', missing: [{ path: '/spec/cluster/region', want: 'present' }] };
      case 'progressing':
        return { outcome: 'Progressing', requeueAfterSeconds: 7 };
      case 'retry':
        return { outcome: 'Retry', message: 'try again' };
      case 'failed':
        return { outcome: 'Failed', message: 'never' };
      case 'patch':
        await entry.patch({ status: { outputs } });
        return { outcome: 'Done' };
      case 'goOn':
        await run.heartbeat(5);
        await run.heartbeat(5);
        return { outcome: 'Done', outputs };
      default:
        return { outcome: 'Done', outputs };
    }
  },
});
