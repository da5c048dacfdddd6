import assert from 'node:assert/strict';
import { newSignedPair } from '../../../../src/certificates/material.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { type Behavior, done, type InMemoryManager } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** The last written conditions as `type=status reason`, without normal ones. */
function abnormalConditions({ statusPatches }: InMemoryManager, component: string): string[] {
  return conditions({ statusPatches }, component)
    .filter(({ type, status }) => status !== (type === 'Cyclic' ? 'False' : 'True'))
    .map(({ type, status, reason }) => `${type}=${status} ${reason}`);
}

function conditions({ statusPatches }: Pick<InMemoryManager, 'statusPatches'>, component: string): Condition[] {
  const last = statusPatches.findLast((patch) => patch.component === component)?.patch;
  return (last as { status: { conditions: Condition[] } } | undefined)?.status.conditions ?? [];
}

describe('the conditions of registrations', () => {
  const cases = {
    'one that reads its own output': {
      registered: [{ name: 'network', reads: ['/status/outputs/network/vnet'] }],
      refused: 'network',
      message: /^reads \/status\/outputs\/network\/vnet, which the component writes itself/,
    },
    'the second of two owners of a path': {
      registered: [{ name: 'network' }, { name: 'pirate', writes: ['/status/outputs/network/vnet'] }],
      refused: 'pirate',
      message: /^\/status\/outputs\/network\/vnet overlaps \/status\/outputs\/network, which component network owns/,
    },
    'one with an invalid selector': {
      registered: [
        { name: 'network', selector: { matchExpressions: [{ key: 'tier', operator: 'Like', values: ['gold'] }] } },
      ],
      refused: 'network',
      message: /^selector: /,
    },
    // An empty bundle would trust every public CA.
    'one with an empty caBundle': {
      registered: [{ name: 'network', caBundle: '' }],
      refused: 'network',
      message: /^caBundle: contains no PEM certificate/,
    },
    'one with a caBundle that is no certificate': {
      registered: [
        { name: 'network', caBundle: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n' },
        { name: 'dns', caBundle: newSignedPair(['dns.dns.svc'], Date.now()).authority },
      ],
      refused: 'network',
      message: /^caBundle: contains no PEM certificate that can be parsed \(.*\); set it to the CA certificate/,
    },
  };
  for (const [what, { registered, refused, message }] of Object.entries(cases)) {
    it(`refuse ${what}: it is not called, and others run`, async () => {
      const { clock, inventory, manager } = await memoryStage([...registered, { name: 'bystander' }]);
      inventory.create({ name: 'one' });
      await clock.advance(60_000);
      assert.equal(manager.callsOf(refused).length, 0);
      const accepted = conditions(manager, refused).find(({ type }) => type === 'Accepted');
      assert.deepEqual([accepted?.status, accepted?.reason], ['False', 'Refused']);
      assert.match(accepted?.message ?? '', message);
      for (const name of [...registered.map((one) => one.name), 'bystander']) {
        if (name !== refused) assert.deepEqual([name, abnormalConditions(manager, name)], [name, []]);
      }
      assert.equal(manager.callsOf('bystander').length, 1);
      const row = inventory.entry({ name: 'one' })?.components.find(({ name }) => name === refused);
      if (row?.state !== 'NotApplicable')
        assert.deepEqual([row?.state, row?.reason], ['Failed', 'RegistrationRefused']);
    });
  }

  it('allow runs as soon as a refused registration is corrected', async () => {
    const { clock, inventory, registrations, manager } = await memoryStage([
      { name: 'network', reads: ['/status/outputs/network'] },
    ]);
    inventory.create({ name: 'one' });
    await clock.advance(10_000);
    assert.equal(manager.calls.length, 0);
    registrations.put({ name: 'network' });
    await clock.advance(1000);
    assert.equal(manager.calls.length, 1);
    assert.deepEqual(abnormalConditions(manager, 'network'), []);
    assert.equal(inventory.entry({ name: 'one' })?.components[0]?.state, 'Done');
  });

  it('allow the second of two owners to run once the first is deleted', async () => {
    const { clock, registrations, manager } = await stageWithEntry([
      { name: 'network' },
      { name: 'pirate', writes: ['/status/outputs/network'] },
    ]);
    registrations.remove('network');
    await clock.advance(1000);
    assert.equal(manager.callsOf('pirate').length, 1);
    assert.deepEqual(abnormalConditions(manager, 'pirate'), []);
  });

  it('name why calls to the endpoint fail, without a write for each further failure', async () => {
    let call = 0;
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], {
      network: () => ({ kind: 'notAccepted', code: 'Unreachable', message: `cause ${++call}` }),
    });
    inventory.create({ name: 'one' });
    await clock.advance(120_000);
    assert.ok(call > 6, `${call} calls`);
    const reachable = conditions(manager, 'network').find(({ type }) => type === 'Reachable');
    assert.match(reachable?.message ?? '', /; the circuit breaker opened at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: cause 5/);
    const unreachable = manager.statusPatches.filter(({ patch }) => JSON.stringify(patch).includes('NotAnswering'));
    assert.equal(unreachable.length, 1);
  });

  it('report a cycle, and its components still run', async () => {
    const { manager } = await stageWithEntry([
      { name: 'a', reads: ['/status/outputs/b'] },
      { name: 'b', reads: ['/status/outputs/a'] },
      { name: 'c', reads: ['/status/outputs/a'] },
    ]);
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => manager && abnormalConditions(manager, name)),
      [['Cyclic=True ReadsItself'], ['Cyclic=True ReadsItself'], []],
    );
    const cyclic = conditions(manager, 'a').find(({ type }) => type === 'Cyclic');
    assert.match(cyclic?.message ?? '', /a → b → a/);
    assert.deepEqual(manager.calls.map(({ component }) => component).sort(), ['a', 'b', 'c']);
  });

  for (const [what, error, tries] of [
    ['are retried after a failed write', new ApiError(500, 'InternalError', 'etcd is away'), 4],
    ['are not retried after the registration is gone', new ApiError(404, 'NotFound', 'gone'), 1],
  ] as const) {
    it(what, async () => {
      const { clock, registrations, manager } = await memoryStage([]);
      let writes = 0;
      manager.writing = () => {
        if (++writes < 4) throw error;
      };
      registrations.put({ name: 'network' });
      await clock.advance(60_000);
      assert.equal(writes, tries);
      assert.equal(conditions(manager, 'network').length > 0, tries > 1);
    });
  }

  it('report an endpoint that fails, and its recovery', async () => {
    let dead = true;
    const network: Behavior = () => (dead ? { kind: 'notAccepted', code: 'Unreachable', message: 'refused' } : done());
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], { network });
    for (let i = 0; i < 8; i++) inventory.create({ name: `e${i}` });
    await clock.advance(5000);
    assert.deepEqual(abnormalConditions(manager, 'network'), ['Reachable=False NotAnswering']);
    assert.deepEqual(
      [...(await manager.metric('drawbridge_inventory_breaker_state')).keys()],
      ['{component="network"}'],
    );
    assert.notEqual([...(await manager.metric('drawbridge_inventory_breaker_state')).values()][0], 0);
    dead = false;
    await clock.advance(31_000);
    assert.deepEqual(abnormalConditions(manager, 'network'), []);
    assert.equal([...(await manager.metric('drawbridge_inventory_breaker_state')).values()][0], 0);
  });

  it('report nothing of an earlier registration of the same name', async () => {
    let dead = true;
    const network: Behavior = () => (dead ? { kind: 'notAccepted', code: 'Unreachable', message: 'refused' } : done());
    const { clock, inventory, registrations, manager } = await memoryStage([{ name: 'network' }], { network });
    for (let i = 0; i < 8; i++) inventory.create({ name: `e${i}` });
    await clock.advance(5000);
    assert.deepEqual(abnormalConditions(manager, 'network'), ['Reachable=False NotAnswering']);
    registrations.remove('network');
    await clock.advance(1000);
    assert.deepEqual([...(await manager.metric('drawbridge_inventory_breaker_state')).keys()], []);
    const before = manager.callsOf('network').length;
    dead = false;
    registrations.put({ name: 'network' });
    await clock.advance(500);
    assert.deepEqual(abnormalConditions(manager, 'network'), []);
    assert.equal(manager.callsOf('network').length - before, 8, 'no call waits for a probe');
  });
});
