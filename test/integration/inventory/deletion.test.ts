import assert from 'node:assert/strict';
import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import { kubeconfigSecretName, teardownFinalizer } from '../../../src/api/inventory/names.ts';
import { roleBindings, serviceAccounts } from '../../../src/api/resources.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';

describe('the deletion of an entry', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  /** Publishes under its own name. Its teardown waits while another component reads that output. */
  const made = (name: string): Outcome => ({ outcome: 'Done', outputs: { [name]: { made: true } } });

  it('completes after all components tore down in dependency order, and leaves no access', async () => {
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
