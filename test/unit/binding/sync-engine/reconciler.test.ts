import assert from 'node:assert/strict';
import { Latency } from '../../../../src/binding/metrics.ts';
import { CallSender } from '../../../../src/binding/sync-engine/call-sender.ts';
import { DeleteBreaker } from '../../../../src/binding/sync-engine/delete-breaker.ts';
import type { Problem } from '../../../../src/binding/sync-engine/problems.ts';
import { SyncReconciler } from '../../../../src/binding/sync-engine/reconciler.ts';
import {
  call,
  type KeyState,
  readAll,
  type SyncAction,
  type SyncRules,
  type SyncStrategy,
} from '../../../../src/binding/sync-engine/strategy.ts';
import type { Result } from '../../../../src/engine/result.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { answerTrustMs } from '../../../../src/kube/write-through-cache.ts';
import { type LogFields, noLog } from '../../../../src/observe/log.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const futile = { consumer: 'not kept here', provider: 'not kept there' };
const kinds: Record<string, SyncRules> = {
  'bound objects': { forbiddenAtOnce: true, ineffectiveCapMs: 30 * 60_000, ineffective: futile },
  'claimed objects': { forbiddenAtOnce: false, ineffectiveCapMs: Number.POSITIVE_INFINITY, ineffective: futile },
};
const key = 'team-a/mug';
const forbidden = () => new ApiError(403, 'Forbidden', 'mugs is forbidden');
const unreachable = () => new TransportError('connect ECONNREFUSED', undefined, true);

/** The engine with a strategy whose plan the test sets. */
class Stage {
  readonly clock = new SimulatedClock();
  readonly breaker = new DeleteBreaker();
  readonly counts = { up: 0, down: 0, consumer: 0, provider: 0 };
  readonly woken: string[] = [];
  readonly warned: LogFields[] = [];
  readonly latency = { up: new Latency(this.clock), down: new Latency(this.clock) };
  settled: KeyState = { consumer: { key, uid: 'u1' }, isDeleted: false, isAhead: false };
  missing: string | undefined;
  plans = 0;
  plan: () => SyncAction[] = () => [];
  problem: Problem | undefined;
  readonly sender: CallSender;
  readonly #reconciler: SyncReconciler;

  constructor(rules: SyncRules) {
    const { clock, counts, latency, breaker } = this;
    const observer = {
      up: () => void counts.up++,
      down: () => void counts.down++,
      conflict: (side: 'consumer' | 'provider') => void counts[side]++,
      repaired() {},
    };
    const strategy: SyncStrategy = {
      rules,
      missing: () => this.missing,
      plan: () => {
        this.plans++;
        return this.plan();
      },
      finish: () => this.settled,
      clear() {},
    };
    const log = { ...noLog, warn: (_: string, fields: LogFields = {}) => void this.warned.push(fields) };
    const wake = (other: string) => void this.woken.push(other);
    this.sender = new CallSender({ rules, clock, log, observer, random: () => 0.5, wake });
    const report = (pass: { readonly problem: Problem | undefined }) => {
      this.problem = pass.problem;
    };
    this.#reconciler = new SyncReconciler({ strategy, sender: this.sender, breaker, observer, latency, report, clock });
  }

  reconcile(of = key): Promise<Result> {
    return this.#reconciler.reconcile(of, new AbortController().signal);
  }

  /** A write of the plan. It fails with the result of `fault`. */
  write(fault: () => Error | undefined, more: Partial<Parameters<typeof call>[0]> = {}): SyncAction {
    return call({
      action: 'update',
      side: 'provider',
      content: 'litres',
      call: () => {
        const error = fault();
        return error ? Promise.reject(error) : Promise.resolve('answer');
      },
      ...more,
    });
  }

  /** Reconciles for `forMs` milliseconds, in which each attempt fails. */
  async persist(forMs: number): Promise<void> {
    const endMs = this.clock.monotonic() + forMs;
    while (this.clock.monotonic() < endMs) {
      const result = await this.reconcile();
      assert.equal(result.kind, 'after');
      await this.clock.advance(result.kind === 'after' ? result.delayMs : 0);
    }
  }
}

const delayOf = (result: Result): number => (result.kind === 'after' ? result.delayMs : Number.NaN);

for (const [title, rules] of Object.entries(kinds)) {
  describe(`the engine that syncs ${title}`, () => {
    let stage: Stage;
    beforeEach(() => {
      stage = new Stage(rules);
    });

    it('waits for lists before it plans', async () => {
      stage.missing = 'mugs of this cluster';
      assert.deepEqual(await stage.reconcile(), { kind: 'notReady', missing: ['mugs of this cluster'] });
      assert.equal(stage.plans, 0);
    });

    it('makes the calls in order, and observes their latency', async () => {
      const made: string[] = [];
      stage.latency.up.start(key);
      stage.plan = () =>
        ['first', 'second'].map((action) =>
          call({ action, side: 'provider', content: '', direction: 'up', call: async () => void made.push(action) }),
        );
      assert.deepEqual(await stage.reconcile(), { kind: 'done' });
      assert.deepEqual([made, stage.counts.up], [['first', 'second'], 1]);
    });

    it('plans again after a read, and stops after a failure', async () => {
      let looked = false;
      const read = {
        action: 'read',
        content: key,
        call: () => {
          looked = true;
          return Promise.resolve();
        },
      };
      stage.plan = () =>
        looked
          ? [stage.write(() => new ApiError(422, 'Invalid', 'too long')), { do: 'report', problem: 'never said' }]
          : [readAll({ ...read, side: 'consumer' }, { ...read, side: 'provider' })];
      await stage.reconcile();
      assert.equal(stage.plans, 2);
      assert.deepEqual(stage.problem, { rank: 'failing', message: 'the provider rejected the request: too long' });
    });

    it('pauses after several plans that contradict each other', async () => {
      stage.plan = () => [stage.write(() => undefined, { repeatable: true, onSuccess: () => 'replan' })];
      assert.deepEqual(await stage.reconcile(), { kind: 'after', delayMs: 100 });
      assert.equal(stage.plans, 6);
    });

    it('does not repeat a successful write at once', async () => {
      let writes = 0;
      stage.plan = () => [stage.write(() => void writes++)];
      await stage.reconcile();
      assert.equal(delayOf(await stage.reconcile()), 500);
      assert.equal(writes, 1);
    });

    it('reports an invalid write (422), and retries it with backoff', async () => {
      let tries = 0;
      stage.plan = () => [
        stage.write(() => {
          tries++;
          return new ApiError(422, 'Invalid', 'too long');
        }),
      ];
      await stage.reconcile();
      assert.deepEqual(stage.problem, { rank: 'failing', message: 'the provider rejected the request: too long' });
      await stage.persist(10 * 60_000);
      assert.ok(tries > 20 && tries < 45, `${tries} tries`);
    });

    it(`reports a 403 ${rules.forbiddenAtOnce ? 'at once' : 'if it persists'}, and retries at least every five seconds`, async () => {
      let tries = 0;
      stage.plan = () => [
        stage.write(() => {
          tries++;
          return forbidden();
        }),
      ];
      await stage.reconcile();
      const problem = { rank: 'forbidden', message: 'the provider denied permission: mugs is forbidden' };
      assert.deepEqual(stage.problem, rules.forbiddenAtOnce ? problem : undefined);
      await stage.persist(60_000);
      assert.deepEqual(stage.problem, problem);
      assert.ok(tries >= 12, `${tries} tries`);
    });

    for (const [what, error] of [
      ['a conflict (409)', new ApiError(409, 'Conflict', 'modified')],
      [
        'a patch of an object that was replaced (422)',
        new ApiError(422, 'Invalid', '422: Mug "a" is invalid: metadata.uid: Invalid value: "m-1": field is immutable'),
      ],
      ['an object that already exists (409)', new ApiError(409, 'AlreadyExists', 'exists')],
      ['an object that does not exist (404)', new ApiError(404, 'NotFound', 'not found')],
    ] as const) {
      it(`leaves ${what} to the next event, and reports it if none arrives`, async () => {
        stage.plan = () => [stage.write(() => error)];
        const result = await stage.reconcile();
        assert.equal(delayOf(result), 1_000);
        assert.deepEqual([stage.problem, stage.counts.provider, stage.warned], [undefined, 1, []]);
        await stage.persist(30_000);
        assert.deepEqual(stage.problem, {
          rank: 'failing',
          message: `the provider rejected the request: ${error.message}`,
        });
      });
    }

    it('passes a 404 to the strategy if the strategy expects it', async () => {
      stage.plan = () => [
        stage.write(() => new ApiError(404, 'NotFound', 'not found'), { onNotFound: () => 'continue' }),
        { do: 'report', problem: 'it went' },
      ];
      assert.deepEqual(await stage.reconcile(), { kind: 'done' });
      assert.deepEqual(stage.problem, { rank: 'refused', message: 'it went' });
    });

    it('reports a 404 without a reason, as after the deletion of the CRD', async () => {
      stage.plan = () => [stage.write(() => new ApiError(404, '', 'page not found'), { onNotFound: () => 'continue' })];
      await stage.reconcile();
      assert.deepEqual(stage.problem, {
        rank: 'failing',
        message: 'the provider rejected the request: page not found',
      });
    });

    for (const [what, error] of [
      ['does not answer', unreachable()],
      ['fails internally (500)', new ApiError(500, 'InternalError', 'etcd is away')],
      ['is overloaded (503)', new ApiError(503, 'ServiceUnavailable', 'overloaded')],
      ['throttles (429)', new ApiError(429, 'TooManyRequests', 'slow down')],
    ] as const) {
      it(`requeues every key after an outage in which the provider ${what}, and warns once`, async () => {
        let fault: Error | undefined = error;
        stage.plan = () => [stage.write(() => fault)];
        const keys = ['team-a/a', 'team-a/b', 'team-a/c'];
        for (const one of keys) await stage.reconcile(one);
        assert.deepEqual([stage.problem, stage.warned.length], [undefined, 1]);
        fault = undefined;
        await stage.clock.advance(200);
        await stage.reconcile(keys[0]);
        assert.deepEqual(stage.woken, ['team-a/b', 'team-a/c']);
        assert.deepEqual(await stage.reconcile(keys[1]), { kind: 'done' });
      });
    }

    it('warns of other failures during an outage of the provider', async () => {
      const failures: [side: 'consumer' | 'provider', error: Error][] = [
        ['provider', unreachable()],
        ['provider', unreachable()],
        ['provider', new ApiError(422, 'Invalid', 'too long')],
        ['consumer', forbidden()],
        ['consumer', unreachable()],
      ];
      for (const [index, [side, error]] of failures.entries()) {
        stage.plan = () => [stage.write(() => error, { side })];
        await stage.reconcile(`team-a/${index}`);
      }
      assert.deepEqual(
        stage.warned.map((fields) => fields['key']),
        ['team-a/0', 'team-a/2', 'team-a/3', 'team-a/4'],
      );
    });

    it('waits for the time that the server requests (Retry-After)', async () => {
      stage.plan = () => [stage.write(() => new ApiError(429, 'TooManyRequests', 'slow down', 7_000))];
      assert.equal(delayOf(await stage.reconcile()), 7_000);
    });

    it('continues after a failure if the plan allows it, and keeps the problem while the write backs off', async () => {
      stage.plan = () => [
        stage.write(() => new ApiError(422, 'Invalid', 'too long'), { onFailure: 'continue' }),
        { do: 'wait', missing: 'the rest' },
      ];
      await stage.reconcile();
      const result = await stage.reconcile();
      assert.ok(delayOf(result) > 0);
      assert.deepEqual(stage.problem, { rank: 'failing', message: 'the provider rejected the request: too long' });
    });

    it('backs off from a write that is not kept, or waits for a different write', async () => {
      let writes = 0;
      let content = 'litres';
      stage.plan = () => [stage.write(() => void writes++, { content, isIneffective: () => true })];
      for (let minute = 0; minute < 60; minute++) {
        await stage.reconcile();
        await stage.clock.advance(60_000);
      }
      assert.deepEqual(stage.problem, { rank: 'partial', message: 'not kept there' });
      assert.ok(
        rules.ineffectiveCapMs === Number.POSITIVE_INFINITY ? writes === 1 : writes > 3 && writes < 15,
        `${writes}`,
      );
      content = 'pints';
      const before = writes;
      await stage.reconcile();
      assert.equal(writes, before + 1);
    });

    it('requeues the key if the watch does not confirm a write', async () => {
      stage.settled = { ...stage.settled, isAhead: true };
      assert.equal(delayOf(await stage.reconcile()), answerTrustMs);
    });

    describe('before deletes whose cause was not observed', () => {
      const deletion = (): SyncAction[] => [{ do: 'holdDeletes' }, stage.write(() => undefined, { inferred: true })];
      const lost = Array.from({ length: 25 }, (_, i) => `team-a/lost-${i}`);

      it('counts the deletes of the last minute', async () => {
        stage.plan = deletion;
        const [last = '', ...others] = lost.slice(0, 20);
        for (const one of others) await stage.reconcile(one);
        await stage.clock.advance(1_000);
        for (const one of others) assert.deepEqual(await stage.reconcile(one), { kind: 'done' });
        stage.plan = () => [];
        for (const one of others) await stage.reconcile(one);
        stage.plan = deletion;
        assert.equal((await stage.reconcile(last)).kind, 'notReady');
      });

      it('withdraws deletes that are no longer planned, but not because a read failed', async () => {
        stage.plan = deletion;
        for (const one of lost) await stage.reconcile(one);
        const read = {
          action: 'read',
          side: 'provider',
          content: '',
          call: () => Promise.reject(unreachable()),
        } as const;
        stage.plan = () => [readAll(read)];
        for (const one of lost) await stage.reconcile(one);
        assert.equal(stage.breaker.held, lost.length);
        stage.plan = () => [];
        for (const one of lost) await stage.reconcile(one);
        assert.equal(stage.breaker.held, 0);
      });
    });
  });
}
