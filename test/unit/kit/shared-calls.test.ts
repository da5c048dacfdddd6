import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { SharedCalls } from '../../../src/kit/shared-calls.ts';

const never = new AbortController().signal;

interface Call {
  readonly questions: readonly string[];
  readonly signal: AbortSignal;
  readonly answer: PromiseWithResolvers<string>;
}

describe('SharedCalls', () => {
  let calls: Call[];
  let shared: SharedCalls<string, string>;
  beforeEach(() => {
    calls = [];
    shared = new SharedCalls((questions, signal) => {
      const answer = Promise.withResolvers<string>();
      signal.addEventListener('abort', () => answer.reject(signal.reason));
      calls.push({ questions, signal, answer });
      return answer.promise;
    });
  });

  const asked = (): (readonly string[])[] => calls.map(({ questions }) => questions);

  it('answers those who ask at the same time by one call', async () => {
    const answers = ['a', 'b', 'c'].map((question) => shared.ask('key', question, never));
    await setImmediate();
    assert.deepEqual(asked(), [['a', 'b', 'c']]);
    calls[0]?.answer.resolve('yes');
    assert.deepEqual(await Promise.all(answers), ['yes', 'yes', 'yes']);
  });

  it('gives no one the answer of a call that began before the question', async () => {
    const first = shared.ask('key', 'a', never);
    await setImmediate();
    const later = [shared.ask('key', 'b', never), shared.ask('key', 'c', never)];
    await setImmediate();
    assert.deepEqual(asked(), [['a']]);
    calls[0]?.answer.resolve('old');
    assert.equal(await first, 'old');
    await setImmediate();
    assert.deepEqual(asked(), [['a'], ['b', 'c']]);
    calls[1]?.answer.resolve('new');
    assert.deepEqual(await Promise.all(later), ['new', 'new']);
  });

  it('calls for other keys at the same time', async () => {
    void shared.ask('one', 'a', never);
    void shared.ask('other', 'b', never);
    await setImmediate();
    assert.deepEqual(asked(), [['a'], ['b']]);
  });

  it('rejects for all who share a call that failed, and calls again for the next', async () => {
    const failing = [shared.ask('key', 'a', never), shared.ask('key', 'b', never)];
    await setImmediate();
    const later = shared.ask('key', 'c', never);
    calls[0]?.answer.reject(new Error('no'));
    for (const answer of failing) await assert.rejects(answer, /no/);
    await setImmediate();
    calls[1]?.answer.resolve('yes');
    assert.equal(await later, 'yes');
  });

  it('rejects at once for one who stops waiting, and still answers the others', async () => {
    const stop = new AbortController();
    const stopped = shared.ask('key', 'a', stop.signal);
    const other = shared.ask('key', 'b', never);
    await setImmediate();
    stop.abort(new Error('stopped'));
    await assert.rejects(stopped, /stopped/);
    calls[0]?.answer.resolve('yes');
    assert.equal(await other, 'yes');
  });

  it('aborts a call for which no one waits any more, so that it does not delay the next', async () => {
    const stop = new AbortController();
    const stopped = [shared.ask('key', 'a', stop.signal), shared.ask('key', 'b', stop.signal)];
    await setImmediate();
    const next = shared.ask('key', 'c', never);
    stop.abort(new Error('stopped'));
    for (const answer of stopped) await assert.rejects(answer, /stopped/);
    await setImmediate();
    assert.deepEqual(asked(), [['a', 'b'], ['c']]);
    calls[1]?.answer.resolve('yes');
    assert.equal(await next, 'yes');
  });

  it('never makes a call whose callers left before it began', async () => {
    const first = shared.ask('key', 'a', never);
    await setImmediate();
    const stop = new AbortController();
    const left = shared.ask('key', 'b', stop.signal);
    stop.abort(new Error('stopped'));
    await assert.rejects(left, /stopped/);
    const next = shared.ask('key', 'c', never);
    calls[0]?.answer.resolve('yes');
    assert.equal(await first, 'yes');
    await setImmediate();
    assert.deepEqual(asked(), [['a'], ['c']]);
    calls[1]?.answer.resolve('yes');
    assert.equal(await next, 'yes');
  });
});
