import assert from 'node:assert/strict';
import { destinationOf } from '../../../src/audit/fd-writer.ts';
import { openJournal } from '../../../src/audit/journal.ts';
import { readConfig } from '../../../src/config.ts';
import { Manager } from '../../../src/engine/manager.ts';
import { clock, type Host } from '../../../src/features/feature.ts';
import { inventory } from '../../../src/features/inventory.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { pluck } from '../../support/pluck.ts';

describe('the inventory feature', () => {
  it('opens with its own Lease, without a reachable cluster', async () => {
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
    const host: Host = {
      config,
      cluster,
      credentials,
      metrics: createMetrics(),
      watchRefusals: { inc: () => {} },
      log: noLog,
      manager: new Manager({ clock, log: noLog }),
      serving: () => ({
        certificate: () => assert.fail('no webhook is called'),
        journal: openJournal({ destination: destinationOf('-'), replica: 'test', clock }),
        readiness: {},
        close: {},
      }),
      signal: new AbortController().signal,
    };
    const feature = await inventory.readFiles(config)(host);
    try {
      assert.equal(feature.gate.name, 'drawbridge-inventory');
      const report = await fetch(`http://127.0.0.1:${feature.ports?.['callbacks']}/v1/runs/0-0-0.network.1`, {
        method: 'POST',
      });
      assert.equal(report.status, 503, 'nobody leads');
      assert.deepEqual(Object.keys(feature.readiness), ['inventory-stores', 'inventory-webhooks']);
      const names = ['inventory-fence', 'inventory-runs', 'inventory-entries', 'inventory-registrations'];
      assert.deepEqual(pluck(feature.controllers, 'name'), names);
    } finally {
      for (const close of Object.values(feature.close)) await close();
      await cluster.close();
    }
  });
});
