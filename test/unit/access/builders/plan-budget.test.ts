import assert from 'node:assert/strict';
import { PlanQueue, withinBudget } from '../../../../src/access/builders/plan-budget.ts';
import { type PodAccessInput, planPodAccess } from '../../../../src/access/builders/pod-access.ts';
import type { PodAccessTemplateSpec } from '../../../../src/api/access/pod-access.ts';
import { maxWeight, valueWeight } from '../../../../src/kit/json-value.ts';
import { accessConfig } from '../../../support/access-objects.ts';
import { selectorView, workloadView } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { WorkClock } from '../../../support/work-clock.ts';

const outcome = (result: object): string => {
  const { violation } = result as { violation?: { code: string; message: string } };
  return violation ? `${violation.code}: ${violation.message}` : 'planned';
};

describe('the budget of a plan', () => {
  const spending = (...work: readonly number[]): string =>
    outcome(
      withinBudget((budget) => {
        for (const each of work) budget.spend(each);
        return {};
      }),
    );

  it('allows exactly the work of the limit', () => {
    assert.equal(spending(maxWeight), 'planned');
    assert.match(spending(maxWeight + 1), /^PlanTooLarge: planning the access pod takes more than 8388608 units/);
    assert.match(spending(maxWeight - 1, 1, 1), /^PlanTooLarge/);
  });

  it('counts copied values, and does not copy a value that exceeds it', () => {
    const twoValues = 2 * valueWeight + 'name'.length + 'x'.length;
    const copying = (before: number): string =>
      outcome(
        withinBudget((budget) => {
          budget.spend(before);
          budget.copy({ name: 'x' });
          return {};
        }),
      );
    assert.equal(copying(maxWeight - twoValues), 'planned');
    assert.match(copying(maxWeight - twoValues + 1), /^PlanTooLarge/);
  });

  it('passes other errors on', () => {
    assert.throws(
      () =>
        withinBudget(() => {
          throw new Error('a bug');
        }),
      /a bug/,
    );
  });

  describe('in time', () => {
    /** A clock that advances by `stepMs` with each read. */
    const ticking = (stepMs: number) => {
      let nowMs = -stepMs;
      return { monotonic: () => (nowMs += stepMs) };
    };
    const taking = (clock: { monotonic(): number } | undefined, work: number): string =>
      outcome(
        withinBudget((budget) => {
          budget.spend(work);
          return {};
        }, clock),
      );

    it('is exceeded after 250 ms', () => {
      assert.equal(taking(ticking(250), maxWeight), 'planned');
      const text = taking(ticking(251), maxWeight);
      assert.match(text, /^PlanTooLarge: .* more than 8388608 units of work \(.*\), or more than 250 ms: /);
      assert.equal(taking(ticking(0), maxWeight + 1), text, 'has the same text for each limit');
    });

    it('has no time limit for a plan of little work, however busy the machine is', () =>
      assert.equal(taking(ticking(60_000), maxWeight / 16 - 1), 'planned'));

    it('has no time limit for an earlier decision, whose plan must be the same', () =>
      assert.equal(taking(undefined, maxWeight), 'planned'));
  });
});

describe('planning an access pod', () => {
  type Operation = { op: 'add' | 'remove' | 'copy' | 'move' | 'test'; path: string; from?: string; value?: unknown };
  const plan = (podTemplate: object, spec: object = {}, over: Partial<PodAccessInput> = {}): string =>
    outcome(
      planPodAccess({
        request: { namespace: 'ns', name: 'req', uid: '1a2b3c4d' },
        templateSpec: {
          accessConfig,
          controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
          ...spec,
        } as PodAccessTemplateSpec,
        workload: workloadView('web', { podTemplate: { ...podTemplate } }),
        pullSecrets: [],
        accessPods: 'confined',
        workloads: [],
        selectors: [],
        subjects: [{ kind: 'User', name: 'alice' }],
        durationMs: 60_000,
        ...over,
      }),
    );
  const patching = (operations: readonly Operation[]) => ({
    controllerTargetMutationConfig: { patchSpecOperations: operations },
  });
  const times = (count: number, operation: (index: number) => Operation): Operation[] =>
    Array.from({ length: count }, (_, index) => operation(index));
  const list = (length: number, item: unknown): unknown[] => Array.from({ length }, () => item);
  const map = (length: number, value: string): Record<string, string> =>
    Object.fromEntries(list(length, value).map((each, index) => [`key-${index}`, String(each)]));

  const container = { name: 'app', image: 'a:1' };
  const withArgs = (args: readonly unknown[]) => ({ spec: { containers: [{ ...container, args }] } });
  const wide = { spec: { containers: [container], nodeSelector: map(20_000, 'x') } };
  const manyNames = Object.keys(map(1000, ''));
  const matchExpressions = [{ key: 'app', operator: 'In', values: manyNames }];
  const selectors = Array.from({ length: 1000 }, (_, index) =>
    selectorView('NetworkPolicy', `${index}`, { matchExpressions }),
  );

  const bombs: [string, string][] = [
    [
      'copies of large values',
      plan(
        withArgs(list(10_000, 'x')),
        patching(times(128, () => ({ op: 'copy', from: '/spec/containers/0', path: '/spec/containers/-' }))),
      ),
    ],
    [
      'copies of copies',
      plan(
        withArgs(['x']),
        patching(times(128, (index) => ({ op: 'copy', from: '/spec', path: `/spec/containers/0/c${index % 2}` }))),
      ),
    ],
    [
      'comparisons of large values',
      plan(
        withArgs(list(10_000, 'x')),
        patching(times(128, () => ({ op: 'test', path: '/spec/containers/0/args', value: list(10_000, 'x') }))),
      ),
    ],
    [
      'changes of wide values',
      plan(
        wide,
        patching(times(128, (index) => ({ op: 'add', path: `/spec/nodeSelector/more-${index}`, value: 'x' }))),
      ),
    ],
    [
      'moves within wide values',
      plan(
        wide,
        patching(
          times(128, (index) => ({
            op: 'move',
            from: `/spec/nodeSelector/${index === 0 ? 'key-0' : `m${index - 1}`}`,
            path: `/spec/nodeSelector/m${index}`,
          })),
        ),
      ),
    ],
    ['a pod template of many values', plan(withArgs(list(100_000, '')))],
    ['a pod template of many annotations', plan({ metadata: { annotations: map(50_000, '') }, ...withArgs([]) })],
    ['many values', plan({}, { controllerTargetRef: undefined, podSpec: withArgs(list(100_000, '')).spec })],
    [
      'a patch of large values',
      plan(withArgs([]), patching(times(128, () => ({ op: 'add', path: '/metadata/x', value: list(2500, '') })))),
    ],
    [
      'caps on many containers',
      plan({ spec: { containers: list(12_000, { name: 'a' }) } }, { maxCpu: '1', maxMemory: '1', maxStorage: '1' }),
    ],
    ['selectors with many values', plan(withArgs([]), {}, { selectors })],
  ];
  for (const [title, result] of bombs) {
    it(`rejects ${title}`, () => assert.match(result, /^PlanTooLarge: /));
  }

  it('accepts every template that the API server would store', () => {
    const env = Array.from({ length: 2000 }, (_, index) => ({ name: `VARIABLE_${index}`, value: 'x'.repeat(100) }));
    const large = {
      metadata: { annotations: { script: 'x'.repeat(250_000) } },
      spec: { containers: [{ ...container, env }], volumes: [] },
    };
    const operations = times(20, (index) => ({ op: 'add', path: `/metadata/annotations/more-${index}`, value: 'x' }));
    assert.equal(
      plan(large, { ...patching(operations), maxCpu: '2' }, { selectors: selectors.slice(0, 20) }),
      'planned',
    );
  });
});

describe('queue of plans', () => {
  it('runs one plan at a time, in order, with a pause after a long one', async () => {
    const clock = new WorkClock();
    const queue = new PlanQueue(clock);
    const seen: string[] = [];
    const plan = (name: string, tookMs: number) => () => {
      seen.push(name);
      clock.work(tookMs);
      return name;
    };
    const all = Promise.all([queue.run(plan('short', 5)), queue.run(plan('long', 6)), queue.run(plan('next', 0))]);
    await clock.settle();
    assert.deepEqual(seen, ['short', 'long']);
    await clock.advance(1);
    assert.deepEqual(await all, ['short', 'long', 'next']);
  });

  it('continues after a failed plan', async () => {
    const queue = new PlanQueue(new SimulatedClock());
    const failed = queue.run(() => {
      throw new Error('a bug');
    });
    await assert.rejects(failed, /a bug/);
    assert.equal(await queue.run(() => 'next'), 'next');
  });
});
