import assert from 'node:assert/strict';
import { pods, secrets } from '../../../src/api/resources.ts';
import { ApiError, TransportError } from '../../../src/kube/errors.ts';
import { type ProbedWatch, WatchProbe } from '../../../src/kube/watch-probe.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const allRules = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
const rule = (resource: string, fields: object = {}) => ({
  verbs: ['list', 'watch'],
  apiGroups: [''],
  resources: [resource],
  ...fields,
});
const review = (rules: readonly object[], incomplete = false) => ({ status: { resourceRules: rules, incomplete } });

describe('the probe of watches', () => {
  let clock: SimulatedClock;
  let probe: WatchProbe;
  let answer: (namespace: string) => unknown;
  let asked: { namespace: string; atMs: number }[];
  const told: string[] = [];

  beforeEach(() => {
    clock = new SimulatedClock();
    asked = [];
    told.length = 0;
    answer = () => review([allRules]);
    probe = new WatchProbe({
      clock,
      transport: {
        async request({ body }) {
          const { namespace } = (body as { spec: { namespace: string } }).spec;
          asked.push({ namespace, atMs: clock.monotonic() });
          const given = answer(namespace);
          if (given instanceof Error) throw given;
          return given;
        },
      },
    });
  });
  afterEach(() => probe.close());

  const join = (name: string, fields: Partial<ProbedWatch> = {}) =>
    probe.add({
      resource: pods,
      alive: () => void told.push(`${name} alive`),
      check: () => void told.push(`${name} permission`),
      ...fields,
    });
  const askedSince = (startMs: number): string[] =>
    asked.map(({ namespace, atMs }) => `${namespace} ${atMs - startMs}`);
  const doubts = (): string[] => told.filter((line) => !line.endsWith('alive'));

  it('asks every 8 s, once for all watches of a namespace, and nothing without a watch', async () => {
    await clock.advance(64_000);
    assert.equal(asked.length, 0);
    const leave = [join('a', { namespace: 'team' }), join('b', { namespace: 'team' })];
    const startMs = clock.monotonic();
    await clock.advance(24_500);
    assert.deepEqual(askedSince(startMs), ['team 8000', 'team 16000', 'team 24000']);
    assert.equal(told.filter((line) => line === 'a alive').length, 3);
    for (const end of leave) end();
    await clock.advance(60_000);
    assert.equal(asked.length, 3);
  });

  for (const [what, namespaces, expected] of [
    ['two', ['a', 'b'], ['a 4000', 'b 8000', 'a 12000', 'b 16000', 'a 20000', 'b 24000']],
    ['more', ['a', 'b', 'c'], ['a 4000', 'b 8000', 'c 12000', 'a 16000', 'b 20000', 'c 24000']],
  ] as const) {
    it(`asks for ${what} namespaces in turn every 4 s, together with the probes of other clusters`, async () => {
      await clock.advance(3_000);
      for (const namespace of namespaces) join(namespace, { namespace });
      await clock.advance(22_000);
      assert.deepEqual(askedSince(0), expected);
    });
  }

  it('checks a watch that the rules no longer allow once, and again after they allowed it', async () => {
    join('pods');
    answer = () => review([rule('secrets')]);
    await clock.advance(16_500);
    assert.deepEqual(doubts(), ['pods permission']);
    answer = () => review([rule('pods')]);
    await clock.advance(8_000);
    answer = () => review([]);
    await clock.advance(8_000);
    assert.deepEqual(doubts(), ['pods permission', 'pods permission']);
  });

  it('asks for the other namespaces within a second once one has lost a permission', async () => {
    for (const namespace of ['a', 'b', 'c', 'd']) join(namespace, { namespace });
    answer = () => review([]);
    await clock.advance(9_000);
    assert.deepEqual(doubts(), ['a permission', 'b permission', 'c permission', 'd permission']);
  });

  it('asks for watches of all namespaces where no Role of theirs is', async () => {
    join('all');
    join('one', { namespace: 'team' });
    await clock.advance(8_500);
    assert.deepEqual(asked.map(({ namespace }) => namespace).sort(), ['default', 'team']);
  });

  const unclear: [what: string, rules: object[], expected: string[]][] = [
    ['another verb', [rule('pods', { verbs: ['list'] })], ['pods permission']],
    ['another group', [rule('pods', { apiGroups: ['apps'] })], ['pods permission']],
    ['a subresource', [rule('pods/log')], ['pods permission']],
    ['single objects', [rule('pods', { resourceNames: ['a'] })], ['pods permission']],
    ['rules of the wrong shape', [{ verbs: 'watch', resources: 3 }], ['pods permission']],
    ['all resources of the group', [rule('*')], []],
  ];
  for (const [what, rules, expected] of unclear) {
    it(`${expected.length > 0 ? 'checks' : 'does not check'} a watch if the rules name ${what}`, async () => {
      join('pods');
      answer = () => review(rules);
      await clock.advance(8_500);
      assert.deepEqual(doubts(), expected);
    });
  }

  it('accepts rules for the single object that a watch selects', async () => {
    join('secret', { resource: secrets, fieldSelector: 'metadata.name=mine' });
    answer = () => review([rule('secrets', { resourceNames: ['mine'] })]);
    await clock.advance(8_500);
    answer = () => review([rule('secrets', { resourceNames: ['other'] })]);
    await clock.advance(8_000);
    assert.deepEqual(doubts(), ['secret permission']);
  });

  it('checks a watch by an incomplete list only if it allowed the watch before', async () => {
    join('pods');
    answer = () => review([], true);
    await clock.advance(8_500);
    assert.deepEqual(doubts(), []);
    answer = () => review([rule('pods')], true);
    await clock.advance(8_000);
    answer = () => review([], true);
    await clock.advance(8_000);
    assert.deepEqual(doubts(), ['pods permission']);
  });

  it('checks nothing after a single 401, since the token may just have been replaced', async () => {
    join('a');
    let left = 1;
    answer = () => (left-- > 0 ? new ApiError(401, 'Unauthorized', 'an earlier token') : review([allRules]));
    await clock.advance(30_000);
    assert.deepEqual(doubts(), []);
  });

  const errors: [title: string, error: Error, expected: string][] = [
    ['checks nothing', new TransportError('no answer', undefined, false), ''],
    ['checks every permission', new ApiError(401, 'Unauthorized', 'no'), 'permission'],
    ['checks nothing', new ApiError(429, 'TooManyRequests', 'busy'), ''],
    ['checks nothing', new ApiError(500, 'InternalError', 'no'), ''],
    ['checks nothing, because the server is there,', new ApiError(403, 'Forbidden', 'no'), 'alive'],
    ['checks nothing, because the server is there,', new ApiError(404, 'NotFound', 'no'), 'alive'],
  ];
  for (const [title, error, expected] of errors) {
    it(`${title} after ${error.message} ${error instanceof ApiError ? error.code : ''}`, async () => {
      join('a', { namespace: 'x' });
      join('b', { namespace: 'y' });
      answer = () => error;
      await clock.advance(20_500);
      const lines = [...new Set(told)].sort();
      assert.deepEqual(lines, expected === '' ? [] : [`a ${expected}`, `b ${expected}`]);
      assert.equal(doubts().length, expected === 'alive' || expected === '' ? 0 : 2, 'once each');
    });
  }
});
