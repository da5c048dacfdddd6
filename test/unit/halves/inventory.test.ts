import assert from 'node:assert/strict';
import { destinationOf } from '../../../src/audit/fd-writer.ts';
import { openJournal } from '../../../src/audit/journal.ts';
import { readConfig } from '../../../src/config.ts';
import { controllers } from '../../../src/controllers.ts';
import { clock, type Host } from '../../../src/halves/host.ts';
import { openInventory } from '../../../src/halves/inventory.ts';
import type { Serving } from '../../../src/halves/serving.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import { Health } from '../../../src/observe/health.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';

const serving: Pick<Serving, 'certificate' | 'own' | 'journal' | 'close'> = {
  certificate: () => assert.fail('nobody is called'),
  own: undefined,
  journal: openJournal({ destination: destinationOf('-'), replica: 'test', clock }),
  close: {},
};

describe('the inventory half', () => {
  it('opens behind a lease of its own, without a cluster that answers', async () => {
    const credentials = staticCredentials({ server: 'https://127.0.0.1:1' });
    const cluster = openCluster(credentials, { clock, log: noLog });
    const config = readConfig(
      [
        '--features=inventory',
        '--bind-address=127.0.0.1',
        '--callback-port=0',
        '--callback-url=http://127.0.0.1:9444',
        '--allow-loopback-http=true',
      ],
      {},
    );
    const host: Host = { config, cluster, health: new Health(), metrics: createMetrics(), log: noLog };
    const half = await openInventory(host, serving, credentials);
    try {
      assert.equal(half.gate.name, 'drawbridge-inventory');
      const report = await fetch(`http://127.0.0.1:${half.ports['callbacks']}/v1/runs/0-0-0.network.1`, {
        method: 'POST',
      });
      assert.equal(report.status, 503, 'nobody leads');
      const loops = controllers({
        access: undefined,
        certificates: undefined,
        binding: undefined,
        inventory: half.loops,
      });
      const names = ['inventory-fence', 'inventory-runs', 'inventory-entries', 'inventory-registrations'];
      assert.deepEqual(
        loops.inventory.map(({ name }) => name),
        names,
      );
    } finally {
      for (const close of Object.values(half.close)) await close();
      await cluster.close();
    }
  });
});
