import assert from 'node:assert/strict';
import { aborted, unlessAborted, withDeadline } from '../../../src/kit/promises.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('withDeadline', () => {
  it('settles like the promise and leaves no timer', async () => {
    const clock = new SimulatedClock();
    assert.equal(await withDeadline(clock, 100, Promise.resolve(7)), 7);
    await assert.rejects(withDeadline(clock, 100, Promise.reject(new Error('x'))), /x/);
    await clock.settle();
    assert.equal(clock.pendingTimers, 0);
  });

  it('rejects at the deadline', async () => {
    const clock = new SimulatedClock();
    const rejected = assert.rejects(withDeadline(clock, 100, Promise.withResolvers<void>().promise), {
      code: 'DeadlineExceeded',
    });
    await clock.advance(100);
    await rejected;
  });
});

describe('unlessAborted', () => {
  it('settles like the promise', async () => {
    const { signal } = new AbortController();
    assert.equal(await unlessAborted(Promise.resolve(7), signal), 7);
    await assert.rejects(unlessAborted(Promise.reject(new Error('x')), signal), /x/);
  });

  it('rejects with the reason of the signal, even if the signal was aborted before', async () => {
    const controller = new AbortController();
    const waiting = unlessAborted(Promise.withResolvers<void>().promise, controller.signal);
    controller.abort(new Error('lost the lease'));
    await assert.rejects(waiting, /lost the lease/);
    await assert.rejects(unlessAborted(Promise.resolve(7), controller.signal), /lost the lease/);
  });
});

describe('aborted', () => {
  it('resolves on abort, even if the signal was aborted before', async () => {
    const controller = new AbortController();
    const waiting = aborted(controller.signal);
    controller.abort();
    await waiting;
    await aborted(controller.signal);
  });
});
