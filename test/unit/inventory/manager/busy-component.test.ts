import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { maxColumnText } from '../../../../src/api/inventory/fields.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import type { Reply } from '../../../../src/inventory/ports.ts';
import { shorten } from '../../../../src/kit/shorten.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';

const busy = (retryAfterMs?: number, message = 'the component answered 429'): Reply => ({
  kind: 'notAccepted',
  code: 'Busy',
  message,
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});

/** An entry that is Done, whose component then gives the replies, and accepts later calls. */
const doneThen = async (...replies: readonly Reply[]) => {
  const queue: Reply[] = [done(), ...replies];
  const stage = await memoryStage([{ name: 'network', intervalSeconds: 60 }], {
    network: () => queue.shift() ?? done(),
  });
  const { ref } = stage.inventory.create({ name: 'one' });
  await stage.clock.advance(5000);
  const seen: string[] = [];
  const observe = async (ms: number): Promise<void> => {
    for (const end = stage.clock.monotonic() + ms; stage.clock.monotonic() < end; await stage.clock.advance(50)) {
      const entry = stage.inventory.entry(ref);
      const [row] = entry?.components ?? [];
      const ready = entry?.conditions.find(({ type }) => type === 'Ready')?.status;
      const text = `Ready ${ready}, ${row?.state} ${row?.reason ?? ''}`;
      if (seen.at(-1) !== text) seen.push(text);
    }
  };
  const force = (): void => {
    stage.inventory.annotate(ref, { 'force.inventory.drawbridge.dev/network': `${stage.clock.now()}` });
  };
  return { ...stage, ref, observe, force, seen };
};

describe('a component that answers 429 or 503', () => {
  it('keeps a status for the current inputs, and the entry its Ready, for up to four answers in a row', async () => {
    const { manager, inventory, ref, observe, seen } = await doneThen(...Array(4).fill(busy()));
    await observe(80_000);
    assert.equal(manager.calls.length, 6);
    assert.deepEqual(seen, ['Ready True, Done ']);
    assert.equal(inventory.entry(ref)?.components[0]?.reason, undefined);
  });

  it('is Retrying at once if it does not accept a forced run, with one write for all answers', async () => {
    const { manager, inventory, observe, force, seen } = await doneThen(...Array(3).fill(busy()));
    let writes = 0;
    inventory.onEntry = (now, before) => {
      if (!isDeepStrictEqual(now.components, before?.components)) writes += 1;
    };
    force();
    await observe(10_000);
    assert.deepEqual(seen.slice(1), [
      'Ready False, Progressing Forced',
      'Ready False, Retrying Busy',
      'Ready True, Done ',
    ]);
    assert.equal(writes, 3);
    assert.equal(manager.calls.length, 5);
  });

  it('is Retrying at once if it does not accept the first run', async () => {
    const { clock, inventory } = await memoryStage([{ name: 'network' }], { network: () => busy(30_000) });
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(2000);
    const [row] = inventory.entry(ref)?.components ?? [];
    assert.deepEqual([row?.state, row?.reason, row?.message], ['Retrying', 'Busy', 'the component answered 429']);
  });

  it('shows the newest answer once it is Retrying, also after a forced run', async () => {
    const stage = await doneThen(busy(61_000), busy(undefined, 'the component answered 503'), busy(61_000));
    const { inventory, ref, observe, force } = stage;
    for (const status of [429, 503]) {
      force();
      await observe(300);
      assert.equal(inventory.entry(ref)?.components[0]?.message, `the component answered ${status}`);
    }
  });

  it('is Retrying after five answers in a row, with one write of the status', async () => {
    const { observe, seen } = await doneThen(...Array(8).fill(busy()));
    await observe(170_000);
    assert.deepEqual(seen, ['Ready True, Done ', 'Ready False, Retrying Busy', 'Ready True, Done ']);
  });

  it('is Retrying at once if it asks for more than a minute', async () => {
    const { observe, seen } = await doneThen(busy(61_000));
    await observe(170_000);
    assert.deepEqual(seen, ['Ready True, Done ', 'Ready False, Retrying Busy', 'Ready True, Done ']);
  });
});

describe('the next run of a component that answers 503 with Retry-After', () => {
  it('has no time before the next probe, with two writes of the record for each probe', async () => {
    const { clock, manager, ref, force } = await doneThen(...Array(100).fill(busy(1000)));
    const record = () => manager.stores.runs.find({ entryUid: ref.uid, component: 'network' });
    force();
    await clock.advance(120_000);
    const versions = new Set<string>();
    const callsBefore = manager.calls.length;
    for (let elapsedMs = 0; elapsedMs < 120_000; elapsedMs += 50) {
      await clock.advance(50);
      const found = record();
      versions.add(`${found?.resourceVersion}`);
      if (found?.record.phase === 'Idle') assert.equal(found.record.heldBy, 'Unreachable');
    }
    assert.equal(manager.calls.length - callsBefore, 4);
    assert.ok(versions.size <= 9, `${versions.size} versions`);
  });
});

type OutageStage = Pick<Awaited<ReturnType<typeof memoryStage>>, 'inventory'> & { readonly ref: Entry['ref'] };

describe('an outage of an endpoint', () => {
  for (const [code, message] of [
    ['Unreachable', 'refused'],
    ['Busy', 'the component answered 503'],
  ] as const) {
    it(`costs each entry whose run waits for it one write of its status: Retrying (${code})`, async () => {
      let isDown = true;
      const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], {
        network: () => (isDown ? { kind: 'notAccepted', code, message } : done()),
      });
      const writes = new Map<string, string[]>();
      const statusOf = (entry?: Entry) => [entry?.components, entry?.conditions, entry?.waitingFor];
      inventory.onEntry = (now, before) => {
        if (!before || isDeepStrictEqual(statusOf(now), statusOf(before))) return;
        const { ref, components, waitingFor = '' } = now;
        writes.set(ref.name, [...(writes.get(ref.name) ?? []), `${components[0]?.state} ${waitingFor}`.trim()]);
      };
      const entries = Array.from({ length: 50 }, (_, n) => inventory.create({ name: `e${n}` }));
      // Those that come after the breaker has opened, or whose call was not among the first.
      const waiting = entries.slice(40).map(({ ref }) => ref.name);
      const text = `the endpoint accepts no calls: ${message}; see: kubectl get componentreconciler network -o wide`;
      const during = `Retrying ${shorten(`network: Retrying (${code}): ${text}`, maxColumnText)}`;
      await clock.advance(300_000);
      const probes = new Set(manager.calls.slice(32).map(({ entry }) => entry.url.split('/').at(-1)));
      assert.ok(waiting.some((name) => probes.has(name)) && waiting.some((name) => !probes.has(name)));
      for (const name of waiting) assert.deepEqual(writes.get(name), [during], name);
      isDown = false;
      await clock.advance(60_000);
      for (const name of waiting) assert.deepEqual(writes.get(name), [during, 'Done'], name);

      writes.clear();
      isDown = true;
      for (const { ref } of entries) {
        inventory.setSpec(ref, { components: { network: { enabled: true, config: { cidr: '10.0.0.0/16' } } } });
      }
      await clock.advance(300_000);
      isDown = false;
      await clock.advance(60_000);
      // The calls for some entries fail before the breaker opens.
      for (const [name, seen] of writes)
        assert.deepEqual(
          seen.slice(seen[0]?.includes('InputsChanged') ? 1 : 0),
          [seen.includes(during) ? during : `Retrying network: Retrying (${code}): ${message}`, 'Done'],
          name,
        );
    });
  }

  const network = 'the endpoint accepts no calls: refused; see: kubectl get componentreconciler network -o wide';
  const refused = { kind: 'notAccepted', code: 'Unreachable', message: 'refused' } as const;

  for (const [what, lost, expected] of [
    [
      'that is deleted meanwhile',
      ({ inventory, ref }) => inventory.delete(ref),
      `Deleting (Unreachable): ${network}; to finish without the teardown, annotate the entry with abandon.inventory.drawbridge.dev/network=REASON`,
    ],
    ['whose last call failed before the outage', () => undefined, `Retrying (Unreachable): ${network}`],
  ] as const satisfies readonly (readonly [string, (stage: OutageStage) => void, string])[]) {
    it(`is shown, with one write, by an entry ${what}`, async () => {
      let answer: Reply = done();
      const { clock, inventory, manager, ref } = await stageWithEntry(
        [{ name: 'network', retry: { baseSeconds: 60, capSeconds: 60 } }],
        { network: () => answer },
      );
      if (what !== 'that is deleted meanwhile') {
        answer = { kind: 'failed', code: 'Timeout', message: 'no answer' };
        inventory.setSpec(ref, { components: { network: { enabled: true, config: { cidr: '10.0.0.0/16' } } } });
        await clock.advance(1000);
        assert.equal(inventory.entry(ref)?.components[0]?.reason, 'Timeout');
      }
      answer = refused;
      const others = Array.from({ length: 10 }, (_, n) => inventory.create({ name: `other${n}` }));
      await clock.advance(1000);
      const seen: string[] = [];
      inventory.onEntry = (now, before) => {
        const [row] = now.components;
        if (now.ref.uid === ref.uid && row && !isDeepStrictEqual(row, before?.components[0]))
          seen.push(`${row.state} (${row.reason}): ${row.message}`);
      };
      lost({ inventory, ref });
      await clock.advance(300_000);
      // Without them, the probes are for this entry.
      for (const other of others) inventory.setSpec(other.ref, { suspend: true });
      await clock.advance(600_000);
      assert.deepEqual(seen, [expected]);
      assert.equal(manager.calls.at(-1)?.entry.id, ref.uid);
      answer = done();
    });
  }
});
