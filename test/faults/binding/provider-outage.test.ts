import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { apiServiceBindings } from '../../../src/api/binding/names.ts';
import { keyOf } from '../../../src/api/object.ts';
import { conditionsOf, kettles, statusOf } from '../../support/binding/memory-stage.ts';
import { loadYamlOnce } from '../../support/binding/session-stage.ts';
import { blue, copyOfBlue, WholeKonnector } from '../../support/binding/whole-konnector.ts';

const minuteMs = 60_000;
const name = (index: number): string => `kettle-${index}`;
const names = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => name(from + i));

describe('a provider that is unreachable for an hour', () => {
  const kept = names(0, 200);
  const changed = names(0, 100);
  const reported = names(50, 150);
  const deleted = names(200, 230);
  const made = names(300, 330);
  let whole: WholeKonnector;
  /** Recorded before the outage. */
  let statusWrites: number;
  let events: number;
  let early: Sizes;

  interface Sizes {
    readonly timers: number;
    readonly heap: number;
    readonly events: number;
  }

  const at = (one: string) => ({ ...blue, name: one });
  const copyAt = (one: string) => ({ ...copyOfBlue, name: one });
  const object = (one: string) => whole.consumer.find(kettles, at(one));
  const copy = (one: string) => whole.provider.find(kettles, copyAt(one));
  const binding = () => whole.consumer.find(apiServiceBindings, { name: 'kettles' });
  const failing = (): string[] =>
    Object.entries(conditionsOf(binding()))
      .filter(([, { status }]) => status !== 'True')
      .map(([type, { reason }]) => `${type} ${reason}`);
  const bindingWrites = (): number =>
    whole.consumer.writes.filter((write) => write.startsWith('patch apiservicebindings/status')).length;
  const report = (one: string, status: object): void => {
    const present = copy(one);
    assert.ok(present);
    whole.provider.put(kettles, { ...present, status });
  };
  const inStep = (one: string): boolean =>
    JSON.stringify([object(one)?.spec, object(one)?.status]) === JSON.stringify([copy(one)?.spec, copy(one)?.status]);

  /** Sizes of the konnector, after the clusters of the test have dropped their recorded calls. */
  function sizes(): Sizes {
    statusWrites += bindingWrites();
    for (const cluster of [whole.consumer, whole.provider]) cluster.calls.length = 0;
    collectGarbage();
    return {
      timers: whole.clock.pendingTimers,
      heap: process.memoryUsage().heapUsed,
      events: whole.events.length,
    };
  }

  before(async function () {
    this.timeout(120_000);
    await loadYamlOnce();
    whole = new WholeKonnector();
    whole.start();
    whole.bind();
    await whole.until('the binding is ready', () => conditionsOf(binding())['Ready']?.status === 'True');
    for (const one of [...kept, ...deleted]) whole.kettle({ litres: 1 }, one);
    await whole.until('all copies are there', () => [...kept, ...deleted].every((one) => copy(one) !== undefined));
    for (const one of kept) report(one, { hot: false });
    await whole.settle();
    assert.ok(kept.every(inStep));
    for (const cluster of [whole.consumer, whole.provider]) cluster.calls.length = 0;
    statusWrites = 0;
    events = whole.events.length;
  });
  after(() => whole.stop());

  it('is reported by one condition, which is written once', async function () {
    this.timeout(60_000);
    whole.link.cut();
    for (const one of changed) whole.kettle({ litres: 2 }, one);
    for (const one of made) whole.kettle({ litres: 3 }, one);
    for (const one of deleted) await whole.consumer.client.delete(kettles, at(one));
    for (const one of reported) report(one, { hot: true });
    for (let minute = 0; minute < 5; minute++) await whole.clock.advance(minuteMs);
    early = sizes();
    assert.deepEqual(failing(), ['Ready ClusterBindingUpdateFailed', 'Heartbeating ClusterBindingUpdateFailed']);
    assert.equal(statusWrites, 1, JSON.stringify(statusOf(binding())));
  });

  it('increases neither memory nor writes over time', async function () {
    this.timeout(120_000);
    let retries = 0;
    const heaps = [early.heap];
    for (let minute = 5; minute < 60; minute++) {
      await whole.clock.advance(minuteMs);
      // The konnector retries at least every 30 s.
      retries += whole.provider.calls.filter(({ plural }) => plural === 'kettles').length;
      statusWrites += bindingWrites();
      assert.deepEqual(whole.consumer.writes, []);
      for (const cluster of [whole.consumer, whole.provider]) cluster.calls.length = 0;
      if (minute % 11 === 4) heaps.push(sizes().heap);
    }
    const dirty = changed.length + made.length + deleted.length;
    assert.ok(retries >= dirty * 55, `${retries}`);
    assert.ok(retries <= dirty * 55 * 4, `${retries}`);
    const late = sizes();
    assert.equal(statusWrites, 1);
    assert.equal(late.events, early.events);
    assert.ok(late.events - events <= 2, `${late.events - events}`);
    assert.ok(late.timers <= early.timers + 5, `${early.timers} timers became ${late.timers}`);
    // A leak per retry would grow all the time. The heap that V8 uses for code grows in steps, at times that depend on the load.
    const grownKiB = heaps.slice(1).map((heap, i) => Math.round((heap - (heaps[i] ?? 0)) / 1024));
    assert.ok(Math.min(...grownKiB) < 200, `${grownKiB.join(', ')} KiB in each 11 minutes`);
  });

  it('is in sync within a minute of its return, and nothing is lost', async function () {
    this.timeout(60_000);
    assert.ok(deleted.every((one) => object(one)?.metadata.finalizers?.length === 1));
    whole.link.mend();
    await whole.settle(minuteMs);
    const all = [...kept, ...made];
    assert.deepEqual(
      all.filter((one) => !inStep(one)),
      [],
    );
    assert.deepEqual(
      whole.consumer
        .list(kettles)
        .map(({ metadata }) => keyOf(metadata))
        .sort(),
      all.map((one) => keyOf(at(one))).sort(),
    );
    assert.equal(whole.provider.list(kettles).length, all.length);
    assert.deepEqual(failing(), []);
    assert.equal(bindingWrites(), 1);
  });
});

/** Collects garbage without a flag for node. */
const collectGarbage = ((): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();
