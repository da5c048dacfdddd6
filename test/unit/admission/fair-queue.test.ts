import assert from 'node:assert/strict';
import { FairQueue } from '../../../src/admission/fair-queue.ts';
import { WorkClock } from '../../support/work-clock.ts';

describe('the queue of processor time', () => {
  let clock: WorkClock;
  let queue: FairQueue;
  let done: string[];
  const run = (source: string, ms: number, name = source): Promise<void> =>
    queue.run(source, () => {
      clock.work(ms);
      done.push(name);
    });

  beforeEach(() => {
    clock = new WorkClock();
    queue = new FairQueue({ clock });
    done = [];
  });

  it('runs jobs at once while there is little to do', () => {
    for (let index = 0; index < 4; index++) void run('a', 1, `${index}`);
    assert.deepEqual(done, ['0', '1', '2', '3']);
  });

  it('pauses for the rest of the process after five milliseconds of jobs', async () => {
    for (let index = 0; index < 12; index++) void run('a', 1, `${index}`);
    assert.equal(done.length, 5);
    const roundsAfter = new Map<number, number>();
    const round = (): void => {
      roundsAfter.set(done.length, (roundsAfter.get(done.length) ?? 0) + 1);
      if (done.length < 12) clock.schedule(0, round);
    };
    clock.schedule(0, round);
    await clock.advance(1);
    assert.deepEqual(
      [...roundsAfter],
      [
        [5, 15],
        [10, 16],
        [12, 1],
      ],
    );
  });

  it('runs the waiting job of the source with the least usage first', async () => {
    await run('greedy', 100);
    const all = ['g1', 'g2', 'g3'].map((name) => run('greedy', 100, name));
    all.push(run('modest', 1, 'm1'), run('modest', 1, 'm2'));
    await clock.advance(10);
    await Promise.all(all);
    assert.deepEqual(done, ['greedy', 'm1', 'm2', 'g1', 'g2', 'g3']);
  });

  it('serves equals in turn', async () => {
    await run('x', 5);
    const all = ['a', 'a', 'b', 'b'].map((source) => run(source, 5));
    await clock.advance(10);
    await Promise.all(all);
    assert.deepEqual(done, ['x', 'a', 'b', 'a', 'b']);
  });

  it('halves the usage of a source over time', async () => {
    await run('early', 100);
    await clock.advance(60_000);
    await run('late', 10);
    const all = [run('late', 1, 'late again'), run('early', 1, 'early again')];
    await clock.advance(1);
    await Promise.all(all);
    assert.deepEqual(done.slice(2), ['early again', 'late again']);
  });

  it('charges a job for the work that it starts', async () => {
    for (let index = 0; index < 3; index++) {
      void queue.run('a', () => void done.push(`${index}`), { leastMs: 5 });
    }
    assert.deepEqual(done, ['0']);
    await clock.advance(1);
    assert.deepEqual(done, ['0', '1', '2']);
  });

  it('runs the long jobs of a source after its other jobs, in order', async () => {
    await run('other', 5);
    const wait = (name: string, leastMs: number): Promise<void> =>
      queue.run('a', () => void done.push(name), { leastMs });
    const all = [wait('long 1', 40), wait('long 2', 6), wait('short 1', 5), wait('short 2', 0)];
    await clock.advance(10);
    await Promise.all(all);
    assert.deepEqual(done, ['other', 'short 1', 'short 2', 'long 1', 'long 2']);
  });

  it('rejects the newest job of the source with the most if too many wait', async () => {
    queue = new FairQueue({ clock, maxWaiting: 3 });
    await run('greedy', 5);
    const g = ['g1', 'g2', 'g3'].map((name) => run('greedy', 1, name));
    const modest = run('modest', 1);
    await assert.rejects(g[2] ?? Promise.resolve(), { code: 'Overloaded' });
    await assert.rejects(run('greedy', 1, 'g4'), { code: 'Overloaded' });
    await clock.advance(1);
    await Promise.all([g[0], g[1], modest]);
    assert.deepEqual(done, ['greedy', 'modest', 'g1', 'g2']);
  });

  describe('with tenants of a source', () => {
    const runFor = (source: string, tenant: string, ms: number, signal?: AbortSignal): Promise<void> => {
      const job = (): void => {
        clock.work(ms);
        done.push(`${source} ${tenant}`);
      };
      return queue.run(source, job, { tenant, ...(signal ? { signal } : {}) });
    };

    it('runs the waiting job of the tenant with the least usage first', async () => {
      await runFor('a', 'greedy', 20);
      const all = ['greedy', 'greedy', 'modest', 'modest'].map((tenant) => runFor('a', tenant, 5));
      await clock.advance(10);
      await Promise.all(all);
      assert.deepEqual(done.slice(1), ['a modest', 'a modest', 'a greedy', 'a greedy']);
    });

    it('gives a source no more turns if it has more tenants', async () => {
      await runFor('b', 'other', 5);
      const all = ['1', '2', '3', '4'].map((tenant) => runFor('a', tenant, 5));
      all.push(runFor('b', 'x', 5), runFor('b', 'x', 5));
      await clock.advance(10);
      await Promise.all(all);
      assert.deepEqual(done.slice(1), ['a 1', 'b x', 'a 2', 'b x', 'a 3', 'a 4']);
    });

    it('rejects the newest job of the tenant with the most, of the source with the most', async () => {
      queue = new FairQueue({ clock, maxWaiting: 4 });
      await runFor('a', 'greedy', 5);
      const lone = ['1', '2'].map((tenant) => runFor('b', tenant, 1));
      const [first, last] = [runFor('a', 'greedy', 1), runFor('a', 'greedy', 1)];
      const modest = runFor('a', 'modest', 1);
      await assert.rejects(last, { code: 'Overloaded' });
      await clock.advance(10);
      await Promise.all([...lone, first, modest]);
      assert.deepEqual(done.slice(1), ['b 1', 'b 2', 'a modest', 'a greedy']);
    });

    it('drops a waiting job when its signal aborts, and runs one that it admits instead', async () => {
      queue = new FairQueue({ clock, maxWaiting: 1 });
      const aborter = new AbortController();
      await runFor('a', 'x', 5);
      const dropped = runFor('a', 'x', 5, aborter.signal);
      aborter.abort(new Error('deadline'));
      const admitted = runFor('a', 'y', 5);
      await assert.rejects(dropped, /deadline/);
      await assert.rejects(runFor('a', 'x', 5, aborter.signal), /deadline/);
      await clock.advance(10);
      await admitted;
      assert.deepEqual(done, ['a x', 'a y']);
    });
  });

  it('neither waits for nor charges what a job awaits', async () => {
    let finish: (value: string) => void = () => {};
    const slow = queue.run('a', () => new Promise<string>((resolve) => (finish = resolve)));
    await run('b', 1);
    assert.deepEqual(done, ['b']);
    finish('late');
    assert.equal(await slow, 'late');
  });

  it('continues after a failed job', async () => {
    const failing = queue.run('a', () => {
      clock.work(5);
      throw new Error('broken');
    });
    const next = run('a', 1);
    await assert.rejects(failing, /broken/);
    await clock.advance(1);
    await next;
    assert.deepEqual(done, ['a']);
  });
});
