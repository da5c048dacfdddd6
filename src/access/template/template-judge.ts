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
import type { GrantDryRuns } from './grant-dry-runs.ts';
import type { JudgementQueue } from './judgement-queue.ts';
import type { GrantPlan, PlanRunner, TemplatePlan, TemplatePlans } from './template-plans.ts';

/**
 * Delay between a change of another object and the judgements that it causes, milliseconds, because several objects often change at once.
 */
const settleMs = 1000;

/**
 * Minimum interval between two dry runs for a template that the API server rejects or gave no answer for, milliseconds. The server watches
 * no quotas, priority classes, or labels of namespaces. Shorter than the interval at which templates are reconciled.
 */
const askAgainMs = 35_000;

/** The end of a message about a cause that can end without an edit. In a namespace with many templates, the interval is longer. */
export const checksAgain = 'the server checks again, usually every 40 s';

/** The last judgement of a template, and the state of the template that it is for. */
interface Verdict {
  readonly uid: string;
  readonly generation: number;
  /** Whether the workload existed. */
  readonly hasTarget: boolean;
  /** Whether the judge was allowed to send a dry run (`mayAsk`). */
  readonly isAsked: boolean;
  /** When to judge again although nothing has changed, milliseconds on the monotonic clock; undefined: never. */
  readonly againMs: number | undefined;
  readonly judgement: Judgement;
}

/** What the judge found for a template. */
export interface Judgement {
  /**
   * What denies every request, or `InvalidAccessCommand` of an ExecAccessTemplate, which denies none; absent if there is neither.
   * `ResourceRefused` has status 403 if its cause can end without an edit.
   */
  readonly violation?: Violation;
  /** Fields of the access pod that the API server ignores. */
  readonly unknownFields?: readonly string[];
  /** What the access command names that the planned pod may lack, one sentence each. */
  readonly commandNotes?: readonly string[];
  /** Whether the API server did not answer, so that an earlier answer about the same version stays the best one. */
  readonly isUnanswered?: boolean;
}

/**
 * Judges templates: finds what would deny every request for a template, and caches the answer. To find it, plans as for a request, and asks
 * the API server about the planned objects. As a source, enqueues a template after a change of other objects that its plan read: its
 * workload and, if its grants create a Pod, the objects that select pods in its namespace. Also enqueues it when the JudgementQueue calls
 * its judgement.
 */
export class TemplateJudge implements Source {
  readonly name = 'judge';
  /** The kind of the templates. */
  readonly id: string;
  readonly #deps: TemplateJudgeDeps;
  readonly #verdicts = new Map<string, Verdict>();
  /** When the templates of a namespace, or of the `targetKey` of a workload, must be judged, monotonic milliseconds. Earliest first. */
  readonly #changed = new Map<string, number>();
  /** Number of times that verdicts were discarded. A plan that began before the last time may have read older objects. */
  #invalidations = 0;
  #emit: Emit | undefined;
  #cancel: Cancel = () => undefined;

  constructor(deps: TemplateJudgeDeps) {
    this.#deps = deps;
    this.id = deps.kind.templateKind;
  }

  /** Resolves once the stores that plans read have synced. Incomplete stores would make templates unready for a moment. */
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
   * What denies every request for the template now, with the code that admission, the decider, or the granter uses. With `mayAsk`, the API
   * server checks the planned objects by a dry run. `notPlanned` if judging has spent its share of the processor; the source then emits the
   * template later.
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
          : { judgement: { commandNotes: planned.commandNotes }, again: false };
    const againMs = again ? this.#deps.clock.monotonic() + this.#intervalMs(template) : undefined;
    if (invalidations === this.#invalidations)
      this.#verdicts.set(key, { uid, generation, hasTarget, isAsked: mayAsk, againMs, judgement });
    return judgement;
  }

  /** Discards the verdict of a deleted template. */
  forget(key: string): void {
    this.#verdicts.delete(key);
    this.#deps.queue.remove(this, key);
  }

  /** Enqueues a template, so that its reconciler judges it now. */
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

  /** What the API server answers about the objects, and whether to ask again even if nothing that the server watches changes. */
  async #ask(
    { commandNotes, ...objects }: GrantPlan,
    signal: AbortSignal,
  ): Promise<{ judgement: Judgement; again: boolean }> {
    const answer = await this.#deps.dryRuns.ask(objects, signal);
    if (answer.kind === 'accepted') {
      return { judgement: { commandNotes, unknownFields: answer.unknownFields }, again: false };
    }
    if (answer.kind === 'unanswered') {
      return { judgement: { commandNotes, isUnanswered: true }, again: answer.mayAnswerLater };
    }
    const { cause, remedy, endsWithoutEdit: again } = answer.text;
    const what = answer.object === 'pod' ? 'the access pod' : 'the Role of a grant';
    const message = `the API server rejects ${what}: ${cause}; ${remedy}${again ? `; ${checksAgain}` : ''}`;
    const violation: Violation = { code: 'ResourceRefused', message, status: again ? 403 : 422 };
    return { judgement: { commandNotes, violation }, again };
  }

  /** Grows with the number of templates in the namespace, so that these are checked by dry runs at most about once a second. */
  #intervalMs({ namespace }: TemplateView): number {
    return Math.max(askAgainMs, 1000 * this.#templatesIn(namespace).length);
  }

  #hasTarget({ spec, namespace }: TemplateView): boolean {
    const ref = spec.controllerTargetRef;
    return ref !== undefined && this.#deps.stores.workload(targetKey(ref, namespace)) !== undefined;
  }

  /** The templates that a change of a workload affects: a namespace, a `targetKey`, or undefined for none. */
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

/** Whether the selector of the object may now match other pods: a plan chooses the labels of the access pod so that no selector matches. */
function changesSelection(event: StoreEvent<WorkloadView | SelectorView>): boolean {
  return event.type !== 'updated' || !isDeepStrictEqual(selectionOf(event.before), selectionOf(event.now));
}

const selectionOf = (view: WorkloadView | SelectorView): unknown => [
  view.uid,
  view.selector,
  'isolatesEgress' in view && view.isolatesEgress,
];

const contentOf = ({ uid, selector, podTemplate }: WorkloadView): unknown => [uid, selector, podTemplate];
