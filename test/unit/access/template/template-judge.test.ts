import assert from 'node:assert/strict';
import { PlanQueue } from '../../../../src/access/builders/plan-budget.ts';
import { notPlanned } from '../../../../src/access/policy/template-policy.ts';
import { openAccessStores } from '../../../../src/access/stores/access-stores.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import type { DryRunAnswer } from '../../../../src/access/template/grant-dry-runs.ts';
import { JudgementQueue } from '../../../../src/access/template/judgement-queue.ts';
import { type Judgement, TemplateJudge } from '../../../../src/access/template/template-judge.ts';
import { type PlanRunner, TemplatePlans } from '../../../../src/access/template/template-plans.ts';
import { accessOfTemplate } from '../../../../src/api/access/kinds.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { deployments, services } from '../../../../src/api/resources.ts';
import { execTemplateManifest, podTemplateManifest } from '../../../support/access-objects.ts';
import { WorkClock } from '../../../support/work-clock.ts';
import { MemoryCluster } from '../lifecycle/memory-cluster.ts';

const app = { app: 'payments' };
const shell = { purpose: 'shell' };

/** The longest argument of the container in `podSpecOf` that can be planned, characters. */
const longest = 1_677_432;

/** The spec of a template of a pod whose only container has an argument of so many characters. */
const podSpecOf = (characters: number) => ({
  controllerTargetRef: undefined,
  controllerTargetMutationConfig: undefined,
  podSpec: { containers: [{ name: 'app', image: 'a:1', args: ['x'.repeat(characters)] }] },
});

/** A judge of one kind of template, on a cluster in memory. */
class Stage {
  readonly clock = new WorkClock();
  readonly cluster = new MemoryCluster(this.clock);
  /** How long each plan takes, milliseconds. */
  planMs = 0;
  plans = 0;
  /** What the API server answers to dry runs, and how many were sent. */
  answer: DryRunAnswer = { kind: 'accepted' };
  asked = 0;
  readonly stores = openAccessStores(this.cluster);
  readonly judge: TemplateJudge;
  readonly #emitted: string[] = [];
  #stop = new AbortController();
  readonly #isExec: boolean;

  constructor({ exec = false } = {}) {
    this.#isExec = exec;
    const { clock, stores } = this;
    const queue = new JudgementQueue(new PlanQueue(clock), clock);
    const plansIn = (runner: PlanRunner): TemplatePlans => {
      const counted: PlanRunner = {
        run: (plan, signal) =>
          runner.run(() => {
            this.plans++;
            clock.work(this.planMs);
            return plan();
          }, signal),
      };
      return new TemplatePlans({ stores, runner: counted, clock, accessPods: 'confined' });
    };
    this.judge = new TemplateJudge({
      kind: {
        templateKind: exec ? 'ExecAccessTemplate' : 'PodAccessTemplate',
        templates: this.#templates,
        createsPod: !exec,
      },
      stores,
      plansIn,
      dryRuns: {
        ask: async () => {
          this.asked++;
          return this.answer;
        },
      },
      queue,
      grantable: [],
      serverNamespace: 'drawbridge-system',
      clock,
    });
  }

  get #templates() {
    return this.stores.of(this.#isExec ? 'ExecAccessRequest' : 'PodAccessRequest').templates;
  }

  async start(): Promise<void> {
    this.#stop = new AbortController();
    await this.judge.start((key) => this.#emitted.push(key), this.#stop.signal);
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Stores a template of the Deployment payments, whose access pod has the label purpose=shell. */
  template(name: string, spec: Readonly<Record<string, unknown>> = {}, namespace = 'payments'): TemplateView {
    const manifest = this.#isExec
      ? execTemplateManifest(spec)
      : podTemplateManifest({ controllerTargetMutationConfig: { podLabels: shell }, ...spec });
    const { resource } = accessOfTemplate(this.#isExec ? 'ExecAccessTemplate' : 'PodAccessTemplate').template;
    this.cluster.put(resource, { ...manifest, metadata: { name, namespace } } as KubeObject);
    const stored = this.#templates.get(`${namespace}/${name}`);
    assert(stored);
    return stored;
  }

  deployment(name = 'payments', { labels = app, image = 'a:1', replicas = 1 } = {}): void {
    const template = { metadata: { labels }, spec: { containers: [{ name: 'app', image }] } };
    const metadata = { name, namespace: 'payments' };
    const spec = { replicas, selector: { matchLabels: labels }, template };
    this.cluster.put(deployments, { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec } as KubeObject);
  }

  service(selector: object, { namespace = 'payments', annotations = {} } = {}): void {
    const metadata = { name: 'web', namespace, annotations };
    this.cluster.put(services, { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector } } as KubeObject);
  }

  async code(template: TemplateView, mayAsk = true): Promise<string | undefined> {
    const found = await this.found(template, mayAsk);
    return found === notPlanned ? notPlanned : found.violation?.code;
  }

  async found(template: TemplateView, mayAsk = true): Promise<Judgement | typeof notPlanned> {
    const judging = this.judge.judge(template, { mayAsk }, this.#stop.signal);
    await this.clock.advance(0);
    return judging;
  }

  /** Judges the stored template with this key. */
  async judged(key: string): Promise<string | undefined> {
    const template = this.#templates.get(key);
    assert(template);
    return this.code(template);
  }

  /** The keys that the source emits within `ms`. */
  async emitted(ms: number): Promise<string[]> {
    await this.clock.advance(ms);
    return this.#emitted.splice(0);
  }
}

describe('the judgement of templates', () => {
  let stage: Stage;

  beforeEach(async () => {
    stage = new Stage();
    stage.deployment();
    await stage.start();
  });
  afterEach(() => stage.stop());

  it('has the code of admission for what the template alone decides', async () => {
    const codes: [spec: Readonly<Record<string, unknown>>, code: string | undefined][] = [
      [{}, undefined],
      [{ accessConfig: { allowedGroups: ['devs '] } }, 'InvalidGroup'],
      [
        {
          accessConfig: {
            allowedGroups: ['devs'],
            rules: [{ verbs: ['get'], resources: ['pods/log'], apiGroups: [''] }],
          },
        },
        'NotGrantable',
      ],
      [
        { controllerTargetRef: undefined, podSpec: { containers: [{ name: 'a', image: 'a:1' }], hostNetwork: true } },
        'PodReachesTooFar',
      ],
    ];
    for (const [index, [spec, code]] of codes.entries()) {
      assert.equal(await stage.code(stage.template(`t-${index}`, spec)), code);
    }
  });

  it('plans a version once, and each new version again', async () => {
    const first = stage.template('one');
    assert.equal(await stage.code(first), undefined);
    assert.equal(await stage.code(first), undefined);
    assert.equal(stage.plans, 1);
    await stage.code({ ...first, generation: 2 });
    await stage.code({ ...first, generation: 2, uid: 'another' });
    assert.equal(stage.plans, 3);
  });

  const refused = (isInvalid: boolean): DryRunAnswer => ({ kind: 'refused', object: 'pod', cause: 'no', isInvalid });
  const unanswered = (mayAnswerLater: boolean): DryRunAnswer => ({ kind: 'unanswered', mayAnswerLater });

  it('asks the API server once for a version whose plan passes, and never before the author is verified', async () => {
    const one = stage.template('one');
    stage.answer = refused(true);
    assert.equal(await stage.code(one, false), undefined);
    assert.equal(stage.asked, 0);
    assert.equal(await stage.code(one), 'InvalidTemplate');
    await stage.clock.advance(3_600_000);
    assert.equal(await stage.code(one), 'InvalidTemplate');
    assert.equal(stage.asked, 1);
    stage.service(shell);
    await stage.emitted(1000);
    assert.equal(await stage.code(one), 'PodIsSelected');
    assert.equal(stage.asked, 1);
  });

  const repeated: [title: string, answer: DryRunAnswer, isRepeated: boolean][] = [
    ['rejects it for a cause that can end without an edit', refused(false), true],
    ['finds it invalid', refused(true), false],
    ['gave no answer', unanswered(true), true],
    ['supports no dry run', unanswered(false), false],
    ['accepts it', { kind: 'accepted' }, false],
  ];
  for (const [title, answer, isRepeated] of repeated) {
    it(`asks ${isRepeated ? 'again within 40 s' : 'only once'} if the API server ${title}`, async () => {
      const one = stage.template('one');
      stage.answer = answer;
      await stage.code(one);
      await stage.clock.advance(34_000);
      await stage.code(one);
      assert.equal(stage.asked, 1);
      await stage.clock.advance(6000);
      await stage.code(one);
      assert.equal(stage.asked, isRepeated ? 2 : 1);
    });
  }

  it('asks again about at most one template of a namespace a second', async () => {
    stage.answer = refused(false);
    const templates = Array.from({ length: 120 }, (_, index) => stage.template(`t-${index}`));
    for (const one of templates) await stage.code(one);
    await stage.clock.advance(119_000);
    for (const one of templates) await stage.code(one);
    assert.equal(stage.asked, 120);
    await stage.clock.advance(1000);
    await stage.code(templates[0] as TemplateView);
    assert.equal(stage.asked, 121);
  });

  it('finds at once that a workload is missing or exists', async () => {
    const template = stage.template('one');
    assert.equal(await stage.code(template), undefined);
    stage.cluster.drop(deployments, { namespace: 'payments', name: 'payments' });
    assert.equal(await stage.code(template), 'TargetNotFound');
    stage.deployment();
    assert.equal(await stage.code(template), undefined);
  });

  it('emits a template again a second after the first of several changes that its plan reads', async () => {
    const template = stage.template('one');
    assert.equal(await stage.code(template), undefined);
    stage.service(shell);
    assert.deepEqual(await stage.emitted(900), []);
    stage.service({ ...shell, tier: 'web' });
    stage.service(shell);
    assert.deepEqual(await stage.emitted(100), ['payments/one']);
    assert.equal(await stage.code(template), 'PodIsSelected');
    assert.deepEqual(await stage.emitted(60_000), []);
    stage.cluster.drop(services, { namespace: 'payments', name: 'web' });
    assert.deepEqual(await stage.emitted(1000), ['payments/one']);
    assert.equal(await stage.code(template), undefined);
  });

  const changes: [title: string, change: () => void, emitted: string[]][] = [
    ['the pod template of its workload', () => stage.deployment('payments', { image: 'a:2' }), ['payments/one']],
    ['another selector', () => stage.deployment('other', { labels: { app: 'x' } }), ['payments/one', 'payments/two']],
    ['the replicas of its workload', () => stage.deployment('payments', { replicas: 3 }), []],
    [
      'the pod template of another workload',
      () => stage.deployment('billing', { labels: { app: 'billing' }, image: 'a:2' }),
      ['payments/two'],
    ],
    ['an annotation of a Service', () => stage.service({ app: 'web' }, { annotations: { a: 'b' } }), []],
    ['a Service of another namespace', () => stage.service(shell, { namespace: 'other' }), []],
  ];
  for (const [title, change, emitted] of changes) {
    it(`emits ${emitted.length === 0 ? 'no template' : emitted.join(' and ')} after a change of ${title}`, async () => {
      stage.deployment('billing', { labels: { app: 'billing' } });
      stage.service({ app: 'web' });
      await stage.emitted(10_000);
      await stage.code(stage.template('one'));
      const billing = { controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'billing' } };
      await stage.code(stage.template('two', billing));
      change();
      assert.deepEqual(await stage.emitted(10_000), emitted);
    });
  }

  it('takes at most a tenth of the processor after the first quarter of a second, and emits the others later', async () => {
    stage.planMs = 50;
    const names = Array.from({ length: 20 }, (_, index) => `t-${index}`);
    const templates = names.map((name) => stage.template(name));
    const codes = [];
    for (const template of templates) codes.push(await stage.code(template));
    assert.deepEqual(codes.filter((code) => code === notPlanned).length, 14);
    assert.equal(stage.plans, 6);
    const emitted: string[] = [];
    const startedMs = stage.clock.monotonic();
    while (emitted.length < 14 && stage.clock.monotonic() - startedMs < 60_000) {
      for (const key of await stage.emitted(10)) {
        emitted.push(key);
        const template = templates.find((one) => one.key === key);
        assert(template);
        assert.equal(await stage.code(template), undefined);
      }
    }
    assert.deepEqual(
      emitted,
      names.slice(6).map((name) => `payments/${name}`),
    );
    const share = (14 * stage.planMs) / (stage.clock.monotonic() - startedMs);
    assert(share > 0.08 && share <= 0.11, `${share}`);
  });

  it('has one judgement of a template waiting, in the order of the changes, at most 100 a second', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `t-${index}`);
    for (const name of names) stage.template(name);
    const emitted: string[] = [];
    for (let second = 0; second < 4; second++) {
      stage.service(second % 2 === 0 ? shell : { app: 'web' });
      const before = emitted.length;
      for (let ms = 0; ms < 1000; ms += 10) {
        for (const key of await stage.emitted(10)) {
          emitted.push(key);
          await stage.judged(key);
        }
      }
      const now = emitted.length - before;
      assert(now <= 101, `${now} in a second`);
    }
    assert(emitted.length > 200, `${emitted.length}`);
    assert.deepEqual(
      emitted.slice(0, 300),
      names.slice(0, emitted.length).map((name) => `payments/${name}`),
    );
  });

  // The longest argument of a podSpec that can be planned; each plan of such a template takes about 250 ms.
  for (const { characters, planMs, code } of [
    { characters: 60_000, planMs: 10, code: undefined },
    { characters: 262_144, planMs: 50, code: undefined },
    { characters: longest, planMs: 250, code: undefined },
    { characters: longest + 1, planMs: 250, code: 'PlanTooLarge' },
  ]) {
    it(`judges a podSpec of ${characters} characters within a minute while users edit other templates`, async () => {
      const busy = Array.from({ length: 10 }, (_, index) => stage.template(`busy-${index}`, podSpecOf(60_000)));
      let generation = 1;
      stage.planMs = 10;
      // Spends the share.
      for (let round = 0; round < 10; round++)
        for (const one of busy) await stage.code({ ...one, generation: ++generation });
      const large = stage.template('large', podSpecOf(characters));
      assert.equal(await stage.code(large), notPlanned);
      const emitted = new Set<string>();
      const startedMs = stage.clock.monotonic();
      while (!emitted.has(large.key)) {
        assert(stage.clock.monotonic() - startedMs < 60_000, 'the turn of the template has not come within a minute');
        for (const key of await stage.emitted(5)) {
          emitted.add(key);
          const edited = busy.find((one) => one.key === key);
          if (edited) await stage.code({ ...edited, generation });
        }
        for (const one of busy) await stage.code({ ...one, generation: ++generation });
      }
      stage.planMs = planMs;
      assert.equal(await stage.code(large), code);
    });
  }

  it('drops its answers when it stops, because it observes no changes then', async () => {
    const template = stage.template('one');
    assert.equal(await stage.code(template), undefined);
    stage.stop();
    stage.service(shell);
    await stage.start();
    assert.equal(await stage.code(template), 'PodIsSelected');
    assert.deepEqual(await stage.emitted(10_000), []);
  });

  it('does not start before the stores that it reads have synced', async () => {
    const unsynced = new AbortController();
    const [first] = stage.stores.selectors;
    assert(first);
    const whenSynced = first.whenSynced.bind(first);
    let sync = (): void => undefined;
    first.whenSynced = () => new Promise((resolve) => (sync = resolve));
    let started = false;
    const starting = stage.judge.start(() => undefined, unsynced.signal).then(() => (started = true));
    await stage.clock.advance(10_000);
    assert.equal(started, false);
    sync();
    await starting;
    first.whenSynced = whenSynced;
    unsynced.abort();
  });

  it('of an ExecAccessTemplate reads its workload only', async () => {
    const exec = new Stage({ exec: true });
    exec.deployment();
    await exec.start();
    const template = exec.template('one');
    assert.equal(await exec.code(template), undefined);
    exec.service(app);
    exec.deployment('other', { labels: { app: 'other' } });
    assert.deepEqual(await exec.emitted(10_000), []);
    exec.cluster.drop(deployments, { namespace: 'payments', name: 'payments' });
    assert.deepEqual(await exec.emitted(10_000), ['payments/one']);
    assert.equal(await exec.code(template), 'TargetNotFound');
    exec.stop();
  });
});
