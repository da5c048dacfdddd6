import assert from 'node:assert/strict';
import type { Emit } from '../../../../src/engine/source.ts';
import { fromEach, fromSubscription } from '../../../../src/engine/sources/from-subscription.ts';

/** A subject with any number of listeners. */
class Subject<Event> {
  readonly listeners = new Set<(event: Event) => void>();

  subscribe(listener: (event: Event) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  emit(event: Event): void {
    for (const listener of this.listeners) listener(event);
  }
}

const collector = () => {
  const emitted: string[] = [];
  const emit: Emit = (key, reason, { lane } = {}) =>
    void emitted.push(`${key} (${reason})${lane === undefined ? '' : ` in lane ${lane}`}`);
  return { emitted, emit };
};

describe('a source from a subscription', () => {
  it('emits under its own name unless the emission has a reason, until it is stopped', async () => {
    const subject = new Subject<string>();
    const { emitted, emit } = collector();
    const abort = new AbortController();
    const source = fromSubscription('pods', subject, (key) => [key, { key: `${key}/owner`, reason: 'owned', lane: 0 }]);
    await source.start(emit, abort.signal);
    subject.emit('a');
    abort.abort();
    subject.emit('b');
    assert.deepEqual(emitted, ['a (pods)', 'a/owner (owned) in lane 0']);
    assert.equal(subject.listeners.size, 0);
  });

  it('does not subscribe when it is stopped before it starts', async () => {
    const subject = new Subject<string>();
    await assert.rejects(fromSubscription('pods', subject, (key) => [key]).start(() => {}, AbortSignal.abort()));
    assert.equal(subject.listeners.size, 0);
  });

  it('is ready once the subject has synced, and at once if the subject does not sync', async () => {
    const { emit } = collector();
    const { signal } = new AbortController();
    await fromSubscription('plain', new Subject<string>(), (key) => [key]).start(emit, signal);
    const synced = Object.assign(new Subject<string>(), { whenSynced: () => Promise.reject(new Error('not yet')) });
    await assert.rejects(fromSubscription('store', synced, (key) => [key]).start(emit, signal), /not yet/);
  });
});

describe('a source from a changing set of members', () => {
  class Sessions extends Subject<void> {
    present: Subject<string>[] = [];
    list = () => this.present;
  }
  const start = (sessions: Sessions) => {
    const { emitted, emit } = collector();
    const abort = new AbortController();
    const source = fromEach('export', sessions, (session, emit) => session.subscribe((key) => emit(key, 'export')));
    return { emitted, abort, started: source.start(emit, abort.signal) };
  };

  it('follows present and new members, each once, and unsubscribes from removed ones', async () => {
    const [a, b] = [new Subject<string>(), new Subject<string>()];
    const sessions = new Sessions();
    sessions.present = [a];
    const { emitted, started } = start(sessions);
    await started;
    sessions.present = [a, b];
    sessions.emit();
    sessions.emit();
    a.emit('1');
    b.emit('2');
    sessions.present = [b];
    sessions.emit();
    a.emit('3');
    assert.deepEqual(emitted, ['1 (export)', '2 (export)']);
    assert.deepEqual([a.listeners.size, b.listeners.size], [0, 1]);
  });

  it('unsubscribes from all when it is stopped', async () => {
    const a = new Subject<string>();
    const sessions = new Sessions();
    sessions.present = [a];
    const { abort, started } = start(sessions);
    await started;
    abort.abort();
    assert.deepEqual([a.listeners.size, sessions.listeners.size], [0, 0]);
  });

  it('follows a member once even if its first event changes the members', async () => {
    const sessions = new Sessions();
    let followed = 0;
    const source = fromEach('export', sessions, () => {
      followed += 1;
      if (followed === 1) sessions.emit();
      return () => undefined;
    });
    sessions.present = [new Subject<string>()];
    await source.start(() => undefined, new AbortController().signal);
    assert.equal(followed, 1);
  });
});
