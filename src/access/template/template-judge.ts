import { isDeepStrictEqual } from 'node:util';
import type { Emit, Source } from '../../engine/source.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import type { Projected, StoreEvent } from '../../kube/store.ts';
import type { RbacRule } from '../../rbac/rule-cover.ts';
import type { AccessKind } from '../access-kind.ts';
import { firstViolation, type Violation } from '../policy/policy.ts';
import { notPlanned, templatePolicy } from '../policy/template-policy.ts';
import { type AccessStores, byNamespace, byTarget } from '../stores/access-stores.ts';
import { type TemplateView, targetKey } from '../stores/access-views.ts';
import type { SelectorView, WorkloadView } from '../stores/cluster-views.ts';
import type { GrantDryRuns, GrantObjects } from './grant-dry-runs.ts';
import type { JudgementQueue } from './judgement-queue.ts';
import type { PlanRunner, TemplatePlan, TemplatePlans } from './template-plans.ts';

/** Before the judgements that a change causes, because several objects often change at once. */
const settleMs = 1000;

/** Between two dry runs for a rejected template, because no event tells of quotas, for example. */
const askAgainMs = 35_000;

/** For a cause that can end without an edit. Many templates of a namespace take longer. */
const refusedRemedy =
  'correct the template or its workload, or ask an administrator; the server checks again, usually every 40 s';

interface Verdict {
  readonly uid: string;
  readonly generation: number;
  readonly hasTarget: boolean;
  /** The judge could send a dry run (`mayAsk`). */
  readonly isAsked: boolean;
  /** Monotonic milliseconds: when to judge again although nothing has changed. */
  readonly againMs: number | undefined;
  readonly judgement: Judgement;
}

export interface Judgement {
  /**
   * Denies every request, except `InvalidAccessCommand` of an ExecAccessTemplate.
   */
  readonly violation?: Violation;
  /** The fields of the pod that the API server drops, in its words. */
  readonly ignored?: string;
  /** The API server did not answer: an earlier answer about the version stays the best one. */
  readonly isUnanswered?: boolean;
}

/**
 * Finds what would deny every request for a template: plans one, and asks the API server about its
 * objects. As a source, enqueues a template when an object that its plan read changes, or when its
 * turn in the JudgementQueue comes.
 */
export class TemplateJudge implements Source {
  readonly name = 'judge';
  /** The kind of the templates. */
  readonly id: string;
  readonly #deps: TemplateJudgeDeps;
  readonly #verdicts = new Map<string, Verdict>();
  /** By namespace or `targetKey`: when to judge its templates, monotonic milliseconds. */
  readonly #changed = new Map<string, number>();
  /** A plan that began before verdicts were last discarded may have read older objects. */
  #invalidations = 0;
  #emit: Emit | undefined;
  #cancel: Cancel = () => undefined;

  constructor(deps: TemplateJudgeDeps) {
    this.#deps = deps;
    this.id = deps.kind.templateKind;
  }

  /** Incomplete stores would make templates unready for a moment. */
  async start(emit: Emit, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // While this replica did not lead, no event discarded outdated verdicts.
    this.#verdicts.clear();
    const { workloads, selectors } = this.#deps.stores;
    const unsubscribes = [
      ...workloads.map((store) => store.subscribe((event) => this.#onChange(this.#scopeOf(event)))),
      ...(this.#deps.kind.createsPod ? selectors : []).map((store) =>
        store.subscribe((event) => this.#onChange(changesSelection(event) ? namespaceOf(event) : undefined)),
      ),
    ];
    const stop = (): void => {
      for (const unsubscribe of unsubscribes) unsubscribe();
      this.#cancel();
      this.#emit = undefined;
      this.#changed.clear();
      this.#deps.queue.removeAll(this);
    };
    signal.addEventListener('abort', stop, { once: true });
    await Promise.all([...workloads, ...selectors].map((store) => store.whenSynced(signal)));
    signal.throwIfAborted();
    this.#emit = emit;
  }

  /**
   * `mayAsk`: also by a dry run. `notPlanned` if judging has spent its share of the processor; the
   * source emits the template later.
   */
  async judge(
    template: TemplateView,
    { mayAsk }: { readonly mayAsk: boolean },
    signal: AbortSignal,
  ): Promise<Judgement | typeof notPlanned> {
    const { key, uid, generation } = template;
    const hasTarget = this.#hasTarget(template);
    const verdict = this.#verdicts.get(key);
    const isSameState = verdict?.uid === uid && verdict.generation === generation && verdict.hasTarget === hasTarget;
    if (isSameState && verdict.isAsked === mayAsk && this.#deps.clock.monotonic() < (verdict.againMs ?? Infinity)) {
      this.#deps.queue.remove(this, key);
      return verdict.judgement;
    }
    const invalidations = this.#invalidations;
    const planned = await this.#deps.queue.judge(this, key, (runner) => this.#plan(template, runner, signal));
    if (planned === notPlanned) {
      this.#verdicts.delete(key);
      return notPlanned;
    }
    const { judgement, again } =
      'violation' in planned
        ? { judgement: planned, again: false }
        : mayAsk
          ? await this.#ask(planned, signal)
          : { judgement: {}, again: false };
    const againMs = again ? this.#deps.clock.monotonic() + this.#intervalMs(template) : undefined;
    if (invalidations === this.#invalidations)
      this.#verdicts.set(key, { uid, generation, hasTarget, isAsked: mayAsk, againMs, judgement });
    return judgement;
  }

  forget(key: string): void {
    this.#verdicts.delete(key);
    this.#deps.queue.remove(this, key);
  }

  call(key: string): void {
    this.#emit?.(key, this.name);
  }

  /** Checks in the order of the webhook. */
  async #plan(
    { namespace, name, spec }: TemplateView,
    runner: PlanRunner,
    signal: AbortSignal,
  ): Promise<TemplatePlan | typeof notPlanned> {
    const { plansIn, grantable, kind, serverNamespace } = this.#deps;
    const plans = plansIn(runner);
    const template = { kind: kind.templateKind, namespace, name, spec };
    const broken = firstViolation(templatePolicy, { ...template, grantable, serverNamespace });
    if (broken) return { violation: broken };
    const found = await plans.violationsInEmptyNamespace(template, signal);
    if (found === notPlanned) return notPlanned;
    const [violation] = found;
    return violation ? { violation } : plans.planInNamespace(template, signal);
  }

  /** `again`: ask again even if nothing that the server watches changes. */
  async #ask(objects: GrantObjects, signal: AbortSignal): Promise<{ judgement: Judgement; again: boolean }> {
    const answer = await this.#deps.dryRuns.ask(objects, signal);
    if (answer.kind === 'accepted') {
      return { judgement: answer.ignored === undefined ? {} : { ignored: answer.ignored }, again: false };
    }
    if (answer.kind === 'unanswered') {
      return { judgement: { isUnanswered: true }, again: answer.mayAnswerLater };
    }
    const { object, cause, isInvalid } = answer;
    const found = `the API server rejects ${object === 'pod' ? 'the access pod' : 'the Role of a grant'}: ${cause}`;
    const violation: Violation = isInvalid
      ? { code: 'InvalidTemplate', message: `${found}; correct the template or its workload`, status: 422 }
      : { code: 'ResourceRefused', message: `${found}; ${refusedRemedy}`, status: 403 };
    return { judgement: { violation }, again: !isInvalid };
  }

  /** So that the templates of a namespace are checked at most about once a second. */
  #intervalMs({ namespace }: TemplateView): number {
    return Math.max(askAgainMs, 1000 * this.#templatesIn(namespace).length);
  }

  #hasTarget({ spec, namespace }: TemplateView): boolean {
    const ref = spec.controllerTargetRef;
    return ref !== undefined && this.#deps.stores.workload(targetKey(ref, namespace)) !== undefined;
  }

  /** A namespace, a `targetKey`, or undefined for no template. */
  #scopeOf(event: StoreEvent<WorkloadView>): string | undefined {
    if (this.#deps.kind.createsPod && changesSelection(event)) return namespaceOf(event);
    if (event.type === 'updated' && isDeepStrictEqual(contentOf(event.before), contentOf(event.now))) return undefined;
    const { kind, name, namespace } = viewOf(event);
    return targetKey({ kind, name }, namespace);
  }

  #onChange(scope: string | undefined): void {
    // Until `start` resolves, no template has been judged.
    if (scope === undefined || !this.#emit || this.#changed.has(scope)) return;
    this.#changed.set(scope, this.#deps.clock.monotonic() + settleMs);
    this.#schedule();
  }

  #templatesIn(scope: string): readonly TemplateView[] {
    const { templates } = this.#deps.kind;
    return templates.byIndex(scope.includes('/') ? byTarget : byNamespace, scope);
  }

  /** Discards the verdicts of changed scopes that are due; their templates wait for a judgement. */
  #tick(): void {
    const nowMs = this.#deps.clock.monotonic();
    for (const [scope, dueMs] of this.#changed) {
      if (dueMs > nowMs) break;
      this.#changed.delete(scope);
      this.#invalidations++;
      for (const { key } of this.#templatesIn(scope)) {
        this.#verdicts.delete(key);
        this.#deps.queue.add(this, key);
      }
    }
    this.#schedule();
  }

  #schedule(): void {
    this.#cancel();
    const [dueMs] = this.#changed.values();
    if (dueMs === undefined) return;
    const { clock } = this.#deps;
    this.#cancel = clock.schedule(Math.max(0, dueMs - clock.monotonic()), () => this.#tick());
  }
}

interface TemplateJudgeDeps {
  readonly kind: Pick<AccessKind, 'templateKind' | 'templates' | 'createsPod'>;
  readonly stores: Pick<AccessStores, 'workloads' | 'selectors' | 'workload'>;
  readonly plansIn: (runner: PlanRunner) => TemplatePlans;
  readonly queue: JudgementQueue;
  readonly dryRuns: Pick<GrantDryRuns, 'ask'>;
  readonly grantable: readonly RbacRule[];
  readonly serverNamespace: string;
  readonly clock: Clock;
}

const viewOf = <T extends Projected>(event: StoreEvent<T>): T => ('now' in event ? event.now : event.before);

const namespaceOf = (event: StoreEvent<WorkloadView | SelectorView>): string => viewOf(event).namespace;

/** The selector may now match other pods, and access pods get labels that none matches. */
function changesSelection(event: StoreEvent<WorkloadView | SelectorView>): boolean {
  return event.type !== 'updated' || !isDeepStrictEqual(selectionOf(event.before), selectionOf(event.now));
}

const selectionOf = (view: WorkloadView | SelectorView): unknown => [
  view.uid,
  view.selector,
  'isolatesEgress' in view && view.isolatesEgress,
];

const contentOf = ({ uid, selector, podTemplate }: WorkloadView): unknown => [uid, selector, podTemplate];
