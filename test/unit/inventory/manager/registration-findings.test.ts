import assert from 'node:assert/strict';
import { ApiError } from '../../../../src/kube/errors.ts';
import { type Behaviour, done, type InMemoryManager } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** `type=status reason` of what was written last into a registration, without what is as it should be. */
function findings({ statusPatches }: InMemoryManager, component: string): string[] {
  return conditions({ statusPatches }, component)
    .filter(({ type, status }) => status !== (type === 'Cyclic' ? 'False' : 'True'))
    .map(({ type, status, reason }) => `${type}=${status} ${reason}`);
}

function conditions({ statusPatches }: Pick<InMemoryManager, 'statusPatches'>, component: string): Condition[] {
  const last = statusPatches.findLast((patch) => patch.component === component)?.patch;
  return (last as { status: { conditions: Condition[] } } | undefined)?.status.conditions ?? [];
}

describe('what is found out about registrations', () => {
  let ship: InMemoryManager | undefined;
  afterEach(() => ship?.stop());

  const cases = {
    'one that reads what it writes itself': {
      registered: [{ name: 'network', reads: ['/status/outputs/network/vnet'] }],
      refused: ['network'],
      message: /^reads \/status\/outputs\/network\/vnet, which the component writes itself/,
    },
    'the second of two that own one path': {
      registered: [{ name: 'network' }, { name: 'pirate', writes: ['/status/outputs/network'] }],
      refused: ['pirate'],
      message: /^\/status\/outputs\/network overlaps \/status\/outputs\/network, which component network owns/,
    },
    'one that owns what lies below the path of another': {
      registered: [{ name: 'network' }, { name: 'pirate', writes: ['/status/outputs/network/vnet'] }],
      refused: ['pirate'],
      message: /^\/status\/outputs\/network\/vnet overlaps \/status\/outputs\/network, which component network owns/,
    },
    'one whose selector cannot be read': {
      registered: [
        { name: 'network', selector: { matchExpressions: [{ key: 'tier', operator: 'Like', values: ['gold'] }] } },
      ],
      refused: ['network'],
      message: /^selector: /,
    },
  };
  for (const [what, { registered, refused, message }] of Object.entries(cases)) {
    it(`refuses ${what}: it is told so, never called, and others run`, async () => {
      const stage = await memoryStage([...registered, { name: 'bystander' }]);
      const { clock, inventory } = stage;
      ({ ship } = stage);
      inventory.create({ name: 'one' });
      await clock.advance(60_000);
      for (const component of refused) {
        assert.equal(ship.callsOf(component).length, 0);
        const accepted: Condition | undefined = conditions(ship, component).find(({ type }) => type === 'Accepted');
        assert.deepEqual([accepted?.status, accepted?.reason], ['False', 'Refused']);
        assert.match(accepted?.message ?? '', message);
      }
      for (const name of [...registered.map((one) => one.name), 'bystander']) {
        if (!refused.includes(name)) assert.deepEqual([name, findings(ship, name)], [name, []]);
      }
      assert.equal(ship.callsOf('bystander').length, 1);
      const rows = inventory.entry({ name: 'one' })?.components.filter(({ name }) => refused.includes(name));
      for (const row of rows ?? []) {
        if (row.state !== 'NotApplicable') {
          assert.deepEqual([row.state, row.reason], ['Failed', 'RegistrationRefused']);
        }
      }
    });
  }

  it('runs a refused one as soon as it is put right', async () => {
    const stage = await memoryStage([{ name: 'network', reads: ['/status/outputs/network'] }]);
    const { clock, inventory, registrations } = stage;
    ({ ship } = stage);
    inventory.create({ name: 'one' });
    await clock.advance(10_000);
    assert.equal(ship.calls.length, 0);
    registrations.put({ name: 'network' });
    await clock.advance(1000);
    assert.equal(ship.calls.length, 1);
    assert.deepEqual(findings(ship, 'network'), []);
    assert.equal(inventory.entry({ name: 'one' })?.components[0]?.state, 'Done');
  });

  it('runs the second of two owners once the first is gone', async () => {
    const stage = await memoryStage([{ name: 'network' }, { name: 'pirate', writes: ['/status/outputs/network'] }]);
    const { clock, inventory, registrations } = stage;
    ({ ship } = stage);
    inventory.create({ name: 'one' });
    await clock.advance(1000);
    registrations.remove('network');
    await clock.advance(1000);
    assert.equal(ship.callsOf('pirate').length, 1);
    assert.deepEqual(findings(ship, 'pirate'), []);
  });

  it('tells of a circle, and runs those in it all the same', async () => {
    const stage = await memoryStage([
      { name: 'a', reads: ['/status/outputs/b'] },
      { name: 'b', reads: ['/status/outputs/a'] },
      { name: 'c', reads: ['/status/outputs/a'] },
    ]);
    const { clock, inventory } = stage;
    ({ ship } = stage);
    inventory.create({ name: 'one' });
    await clock.advance(1000);
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => ship && findings(ship, name)),
      [['Cyclic=True ReadsItself'], ['Cyclic=True ReadsItself'], []],
    );
    const cyclic = conditions(ship, 'a').find(({ type }) => type === 'Cyclic');
    assert.match(cyclic?.message ?? '', /a → b → a/);
    assert.deepEqual(ship.calls.map(({ component }) => component).sort(), ['a', 'b', 'c']);
  });

  for (const [what, error, tries] of [
    ['tells again when that could not be written', new ApiError(500, 'InternalError', 'etcd is away'), 4],
    ['has nobody to tell when the registration is gone', new ApiError(404, 'NotFound', 'gone'), 1],
  ] as const) {
    it(what, async () => {
      const stage = await memoryStage([]);
      const { clock, registrations } = stage;
      ({ ship } = stage);
      let writes = 0;
      ship.writing = () => {
        if (++writes < 4) throw error;
      };
      registrations.put({ name: 'network' });
      await clock.advance(60_000);
      assert.equal(writes, tries);
      assert.equal(conditions(ship, 'network').length > 0, tries > 1);
    });
  }

  it('tells of an endpoint that refuses calls, and when it answers again', async () => {
    let dead = true;
    const network: Behaviour = () => (dead ? { kind: 'notAccepted', code: 'Unreachable', message: 'refused' } : done());
    const stage = await memoryStage([{ name: 'network' }], { network });
    const { clock, inventory } = stage;
    ({ ship } = stage);
    for (let i = 0; i < 8; i++) inventory.create({ name: `e${i}` });
    await clock.advance(5000);
    assert.deepEqual(findings(ship, 'network'), ['Reachable=False NotAnswering']);
    assert.deepEqual([...(await ship.metric('drawbridge_inventory_breaker_state')).keys()], ['{component="network"}']);
    assert.notEqual([...(await ship.metric('drawbridge_inventory_breaker_state')).values()][0], 0);
    dead = false;
    await clock.advance(31_000);
    assert.deepEqual(findings(ship, 'network'), []);
    assert.equal([...(await ship.metric('drawbridge_inventory_breaker_state')).values()][0], 0);
  });
});
