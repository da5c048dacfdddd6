import assert from 'node:assert/strict';
import type { Limits } from '../../../../src/access/policy/limits.ts';
import { podAccessRequests } from '../../../../src/api/access/pod-access.ts';
import { roleBindings } from '../../../../src/api/resources.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { LifecycleStage } from './lifecycle-stage.ts';

const limitReached = 'LimitReached';

describe('limits on open grants in the controller', () => {
  let stage: LifecycleStage;
  const start = async (limits: Partial<Limits>): Promise<void> => {
    stage = new LifecycleStage();
    stage.limits = { perUser: 0, perNamespace: 0, ...limits };
    await stage.start();
  };
  afterEach(() => stage.stop());

  const ask = (count: number, from = 0): void => {
    for (let index = from; index < from + count; index++) stage.ask({}, { name: `r${index}` });
  };
  const asked = (count: number, from = 0): Promise<void> => {
    ask(count, from);
    return stage.pass();
  };
  const bindings = (): number => stage.cluster.names(roleBindings).length;
  const denials = (): string[] =>
    stage.lines.filter(({ verdict }) => verdict === 'denied').map(({ code = '' }) => code);
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void stage.clock.schedule(ms, resolve));
  const change = (name: string, spec: object): void => {
    const found = stage.cluster.find(podAccessRequests, { namespace: 'payments', name });
    assert.ok(found);
    stage.cluster.put(podAccessRequests, { ...found, spec: { ...(found.spec as object), ...spec } });
  };

  for (const [title, limits, maxGrants] of [
    ['a user', { perUser: 3 }, undefined],
    ['a namespace', { perNamespace: 3 }, undefined],
    ['a template', {}, 3],
  ] as const) {
    it(`are exact for ${title}, with any number of concurrent decisions`, async () => {
      await start(limits);
      if (maxGrants !== undefined) stage.configure({ maxGrants });
      // Decisions overlap: none is stored before all are decided.
      stage.cluster.fault = ({ verb, plural }) =>
        verb === 'patch' && plural === 'podaccessrequests' ? pause(50) : undefined;
      ask(20);
      await stage.clock.advance(1000);
      assert.equal(bindings(), 3);
      assert.deepEqual(denials(), Array(17).fill(limitReached));
    });
  }

  it('free a place after a revocation and at the end of a grant', async () => {
    await start({ perUser: 2 });
    await asked(2);
    change('r0', { revoked: true });
    await stage.clock.advance(100);
    await asked(2, 2);
    assert.equal(bindings(), 2);
    assert.deepEqual(denials(), [limitReached]);
    await stage.clock.advance(600_000);
    await asked(2, 4);
    assert.equal(bindings(), 2);
    assert.deepEqual(denials(), [limitReached]);
  });

  it('keep the place of a grant whose write failed with an unknown outcome', async () => {
    await start({ perUser: 1 });
    let faults = 2;
    stage.cluster.fault = ({ verb, name }) => {
      if (verb === 'patch' && name === 'payments/r0' && faults-- > 0)
        throw new ApiError(500, 'InternalError', 'who knows');
    };
    ask(1);
    await stage.clock.advance(5);
    ask(1, 1);
    await stage.clock.advance(5000);
    assert.equal(bindings(), 1);
    assert.deepEqual(denials(), [limitReached]);
    assert.match(stage.cluster.names(roleBindings)[0] ?? '', /^payments\/r0-/);
  });

  describe('say that the time may move only if a holder can still extend access', () => {
    const longer = / or longer if a holder extends access, /;
    const denied = async (name: string): Promise<string> => {
      stage.ask({}, { name });
      await stage.clock.advance(100);
      const line = stage.lines.at(-1);
      assert.deepEqual([line?.what.name, line?.code], [name, limitReached]);
      return line?.message ?? '';
    };
    it('by the template', async () => {
      await start({});
      await stage.configured({ maxGrants: 1 });
      await stage.granted();
      assert.doesNotMatch(await denied('r1'), longer);
    });

    it('by the extensions that are left', async () => {
      await start({});
      await stage.configured({ maxGrants: 1, extension: { times: 1, total: '1h', approvals: 'None' } });
      await stage.granted();
      assert.match(await denied('r1'), longer);
      stage.extend('5m');
      await stage.clock.advance(100);
      assert.doesNotMatch(await denied('r2'), longer);
    });
  });

  it('count a grant from its decision on, before its RoleBinding exists', async () => {
    await start({ perUser: 1 });
    stage.cluster.fail('create', 'rolebindings');
    ask(1);
    await stage.clock.advance(1000);
    ask(1, 1);
    await stage.clock.advance(1000);
    assert.deepEqual(denials(), [limitReached]);
    stage.cluster.fault = () => {};
    await stage.clock.advance(60_000);
    assert.match(stage.cluster.names(roleBindings).join(), /^payments\/r0-[^,]+$/);
  });

  it('count no denied request, even before its denial is stored', async () => {
    await start({ perUser: 1 });
    await asked(1);
    stage.cluster.fault = ({ verb, name }) => (verb === 'patch' && name === 'payments/r1' ? pause(10_000) : undefined);
    await asked(1, 1);
    change('r0', { revoked: true });
    await stage.clock.advance(100);
    assert.equal(bindings(), 0);
    await asked(1, 2);
    assert.match(stage.cluster.names(roleBindings).join(), /^payments\/r2-[^,]+$/);
    await stage.clock.advance(10_000);
    assert.deepEqual(denials(), [limitReached]);
  });

  it('count grants from before the start of the process', async () => {
    await start({ perUser: 2 });
    await asked(2);
    await stage.restart();
    await asked(1, 2);
    assert.equal(bindings(), 2);
    assert.deepEqual(denials(), [limitReached]);
  });

  it('report the user, the count, the limit, and when a place is free', async () => {
    await start({ perUser: 1 });
    ask(1);
    await stage.clock.advance(60_000);
    await asked(1, 1);
    const message = stage.lines.find(({ verdict }) => verdict === 'denied')?.message ?? '';
    assert.match(message, /^user "alice" has 1 open grant, and the limit is 1; wait until \S+Z, or revoke/);
  });
});
