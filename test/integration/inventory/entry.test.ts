import assert from 'node:assert/strict';
import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import { kubeconfigSecretName, teardownFinalizer } from '../../../src/api/inventory/names.ts';
import { roleBindings, serviceAccounts } from '../../../src/api/resources.ts';
import { registerChain } from '../../support/inventory/chain.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { Prometheus } from '../../support/prometheus.ts';

describe('an entry', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  it('triggers by a change only the components that read it', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done' }));
    const other = await stage.component('other', () => ({ outcome: 'Done' }));
    await stage.entry('one', { components: { network: { config: {} } } });
    await stage.ready('one');
    const before = other.calls.length;
    for (let i = 0; i < 20; i++) {
      const called = network.nextCall();
      await stage.patch('one', { spec: { components: { network: { config: { size: i } } } } });
      const { request } = await called;
      assert.deepEqual(request.run.reasons, ['ConfigChanged:/spec/components/network/config']);
      await stage.ready('one');
    }
    assert.equal(other.calls.length, before);
  });

  it('is Ready after its creation by a chain of components, each of which runs as soon as its input arrives', async () => {
    await registerChain(stage, ['a', 'b', 'c', 'd', 'e'], 100);
    await stage.entry('one');
    await stage.ready('one');
    const { ref } = await stage.get('one');
    const record = (await stage.records()).find(({ entry, component }) => entry.uid === ref.uid && component === 'e');
    assert.ok((record?.seq ?? 99) <= 10);
  });

  it('is shown by the board of the inventory', async () => {
    await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.entry('one');
    await stage.ready('one');
    const prometheus = await Prometheus.start({ 'drawbridge-inventory-metrics': stage.server.metricsPort });
    try {
      await prometheus.showBoard('inventory', [
        'drawbridge_inventory_fence_rejections_total',
        'drawbridge_inventory_notready_entries',
        'drawbridge_inventory_reports_rejected_total',
        'drawbridge_watch_refusals_total',
      ]);
    } finally {
      await prometheus.stop();
    }
  });

  it('keeps unknown fields', async () => {
    const config = { deep: { er: [1, { y: 'ä' }] }, 'with/slash': true };
    await stage.component('novel', () => ({ outcome: 'Done', outputs: { novel: { made: config } } }));
    await stage.entry('one', { cluster: { any: { thing: 1 } }, components: { novel: { config, more: 'field' } } });
    await stage.ready('one');
    const { content } = await stage.get('one');
    assert.deepEqual((content.spec as { cluster: unknown }).cluster, { any: { thing: 1 } });
    assert.deepEqual((content.spec as { components: unknown }).components, {
      novel: { enabled: true, config, more: 'field' },
    });
    assert.deepEqual(content.status.outputs['novel'], { made: config });
  });

  describe('that is deleted', () => {
    /** Publishes under its own name. Its teardown waits while another component reads that output. */
    const made = (name: string): Outcome => ({ outcome: 'Done', outputs: { [name]: { made: true } } });

    it('ends after all components tore down in dependency order, and leaves no access', async () => {
      const order: string[] = [];
      const waits = new Map<string, number>();
      const names = ['network', 'cluster', 'workload'];
      for (const [index, name] of names.entries()) {
        const input = names[index - 1];
        const component = await stage.component(name, () => made(name), {
          ...(input === undefined ? {} : { reads: [`/status/outputs/${input}/made`] }),
        });
        component.teardown = ({ entry }) => {
          if (names.slice(index + 1).some((other) => !order.includes(`${other} ${entry.id}`))) {
            waits.set(name, (waits.get(name) ?? 0) + 1);
            return { outcome: 'NotReady', missing: [{ path: `/status/outputs/${name}/made`, want: 'noReaders' }] };
          }
          order.push(`${name} ${entry.id}`);
          return { outcome: 'Deleted' };
        };
      }
      const { ref } = await stage.entry('one');
      await stage.ready('one');
      assert.ok((await stage.get('one')).finalizers.includes(teardownFinalizer));
      await stage.delete('one');
      await stage.gone('one');
      assert.deepEqual(
        order,
        ['workload', 'cluster', 'network'].map((name) => `${name} ${ref.uid}`),
      );
      assert.ok((waits.get('network') ?? 0) <= 3, `network waited in ${waits.get('network')} teardown runs`);
      const { client } = stage.cluster;
      for (const resource of [roleBindings, serviceAccounts]) {
        const { items } = await client.list(resource, { namespace: stage.namespace });
        const left = items.filter(({ metadata }) => metadata.name.includes(ref.uid));
        assert.deepEqual(
          left.map(({ metadata }) => metadata.name),
          [],
        );
      }
      assert.notEqual(kubeconfigSecretName(ref.uid), '');
      assert.deepEqual(await stage.records(), []);
    });

    it('does not wait for an abandoned component, and audits the abandonment', async () => {
      const network = await stage.component('network', () => made('network'));
      network.teardown = () => ({ outcome: 'Retry' });
      const { ref } = await stage.entry('one');
      await stage.ready('one');
      await stage.delete('one');
      await stage.until('network to have failed', () =>
        network.calls.some(({ request }) => request.operation === 'delete'),
      );
      await stage.patch('one', { metadata: { annotations: { 'abandon.inventory.drawbridge.dev/network': 'lost' } } });
      await stage.gone('one');
      const abandonments = async () =>
        (await stage.server.audit()).filter(
          ({ code, what }) => code === 'Abandoned' && JSON.stringify(what).includes(ref.uid),
        );
      // The end of an entry does not wait for the journal.
      await stage.until('the audit line', async () => (await abandonments()).length > 0);
      assert.deepEqual(
        (await abandonments()).map(({ event, verdict, message }) => [event, verdict, message]),
        [
          [
            'revocation',
            'revoked',
            'component network was abandoned by fleet-admin: lost; the resources that it created were not torn down',
          ],
        ],
      );
    });
  });
});
