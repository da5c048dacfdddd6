import assert from 'node:assert/strict';
import { LiveSession, LiveViews, type ViewAnswer } from '../../../src/gateway/live-views.ts';
import { SessionCast } from '../../../src/gateway/recording/session-cast.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const name = { namespace: 'payments', session: '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10' };
const record = {
  event: 'session',
  who: { user: 'alice' },
  what: { operation: 'CONNECT', apiVersion: 'v1', kind: 'Pod' },
};

/** An answer that the test reads, or does not. */
class Answer {
  text = '';
  reads = true;
  writableLength = 0;
  state: 'open' | 'ended' | 'destroyed' = 'open';
  readonly #closers: (() => void)[] = [];

  writeHead(): this {
    return this;
  }
  write(part: Buffer | string): boolean {
    this.text += part.toString();
    if (!this.reads) this.writableLength += part.length;
    return this.reads;
  }
  end(part: Buffer | string): this {
    this.write(part);
    this.state = 'ended';
    return this;
  }
  destroy(): this {
    this.state = 'destroyed';
    for (const close of this.#closers) close();
    return this;
  }
  once(_: string, listener: () => void): this {
    this.#closers.push(listener);
    return this;
  }
  get lines(): unknown[] {
    return this.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  }
}

describe('the views of a session', () => {
  let clock: SimulatedClock;
  let views: LiveViews;
  let cast: SessionCast;
  let session: LiveSession;
  let end: (reason: string) => void;

  beforeEach(() => {
    clock = new SimulatedClock();
    views = new LiveViews(clock);
    cast = new SessionCast(clock, false);
    session = new LiveSession(name, cast, record as LiveSession['record']);
    end = views.begin(session);
  });

  const show = (): Answer => {
    const answer = new Answer();
    assert.equal(views.show({ session, cast }, answer as unknown as ViewAnswer), true);
    return answer;
  };
  const out = (text: string): void => cast.fromPod(Buffer.from(`\u0001${text}`), 1);
  const type = (channel: number, text: string): void =>
    cast.fromClient(() => Buffer.concat([Buffer.of(channel), Buffer.from(text)]), channel);

  it('begin with the size of the terminal, and have output, sizes, and notes from then on, and no input', async () => {
    type(4, '{"Width":120,"Height":40}');
    out('before');
    await clock.advance(1500);
    const answer = show();
    out('after');
    type(0, 'secret');
    type(4, '{"Width":90,"Height":30}');
    cast.note('access ends in 2 minutes');
    const [header, ...events] = answer.lines;
    assert.deepEqual(header, {
      version: 2,
      width: 120,
      height: 40,
      timestamp: cast.startedAtMs / 1000,
      title: name.session,
    });
    assert.deepEqual(events, [
      [1.5, 'o', 'after'],
      [1.5, 'r', '90x30'],
      [1.5, 'm', 'access ends in 2 minutes'],
    ]);
  });

  it('begin within a message of the pod', () => {
    cast.fromPod(Buffer.from('\u0001first '), 1);
    const answer = show();
    cast.fromPod(Buffer.from('second'), undefined);
    assert.deepEqual(answer.lines.at(-1), [0, 'o', 'second']);
  });

  for (const [what, noted] of [
    ['says the reason', false],
    ['says the reason once, if the terminal has shown it', true],
  ] as const) {
    it(`end with a marker that ${what}`, () => {
      const answer = show();
      if (noted) cast.note('access ended');
      end('access ended');
      assert.deepEqual(answer.lines.slice(1), [[0, 'm', 'access ended']]);
      assert.equal(answer.state, 'ended');
      assert.equal(Object(views.admit(name)).code, 'SessionNotOpen');
    });
  }

  it('cannot begin after the session', () => {
    end('the session ended');
    assert.equal(views.show({ session, cast }, new Answer() as unknown as ViewAnswer), false);
  });

  it('break off for a viewer for whom 1 MiB waits, tell it why, and go on for the others', async () => {
    const [slow, quick] = [show(), show()];
    slow.reads = false;
    for (let i = 0; i < 20; i++) out('x'.repeat(64 * 1024));
    assert.equal(slow.state, 'open');
    assert.match(String(slow.lines.at(-1)), /^0,m,this view ends: its reader was too slow/);
    assert.equal(slow.writableLength < 1100 * 1024, true);
    assert.equal(quick.lines.length, 21);
    await clock.advance(5000);
    assert.equal(slow.state, 'destroyed');
    assert.equal(quick.state, 'open');
  });

  it('cost a session nothing after their end', async () => {
    show().destroy();
    await clock.advance(0);
    assert.equal(session.viewers.size, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  describe('have places', () => {
    const take = (of?: LiveSession): (() => void) => {
      const place = views.reserve(of);
      assert.ok(typeof place === 'function');
      return place;
    };

    it('for eight viewers of a session', () => {
      const places = Array.from({ length: 8 }, () => take(session));
      assert.deepEqual(Object(views.reserve(session)).code, 'TooManySessions');
      for (const release of [places[0], places[0]]) release?.();
      take(session);
      assert.deepEqual(Object(views.reserve(session)).code, 'TooManySessions');
    });

    it('for 64 viewers of a replica, of sessions and of recordings', () => {
      for (let i = 0; i < 63; i++) take();
      take(session);
      for (const of of [session, undefined]) assert.deepEqual(Object(views.reserve(of)).code, 'TooManySessions');
    });
  });
});
