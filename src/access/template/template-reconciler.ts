import {
  fieldsIgnored,
  gatewayCondition,
  type TemplateCondition,
  type TemplateKind,
  templateConditions,
} from '../../api/access/names.ts';
import { mergeConditions, sameConditions } from '../../api/conditions.ts';
import type { Resource } from '../../api/object.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import { type AccessConditionUpdate, allTrue, failure, type Summary, success, summarized } from '../conditions.ts';
import { type PolicyCheck, policyRetryMs } from '../policies/policy-check.ts';
import { accessCommandViolation } from '../policy/access-command.ts';
import { verifyDurations } from '../policy/duration-choice.ts';
import { sessionOf } from '../policy/session-policy.ts';
import { notPlanned } from '../policy/template-policy.ts';
import { type TemplateView, targetKey } from '../stores/access-views.ts';
import type { WorkloadView } from '../stores/cluster-views.ts';
import { type GatewayView, gatewayViolation } from '../stores/gateway-view.ts';
import { type TemplateAuthors, versionUncertified } from './template-authors.ts';
import type { Judgement, TemplateJudge } from './template-judge.ts';

/** Of an author's permissions, and of a template that the API server rejects. */
const recheckMs = 40_000;
/** At the next check, an answer is at most about 60 s old, so a decision finds it cached. */
const acceptedAnswerAgeMs = recheckMs / 2;
/**
 * For the judgement of a new version. Requests wait for the status, so then it is written without.
 */
const maxWaitMs = 5000;

/**
 * Writes the status of a template: ready if its settings, target, author, and gateway are, and the
 * TemplateJudge finds nothing that would deny every request. Until judged, it is not ready, but
 * takes requests.
 */
export class TemplateReconciler implements Reconciler {
  readonly #deps: TemplateReconcilerDeps;
  /** By key: the version that waits for its judgement, and until when on the monotonic clock. */
  readonly #waits = new Map<string, { readonly uid: string; readonly generation: number; readonly untilMs: number }>();

  constructor(deps: TemplateReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const template = this.#deps.templates.get(key);
    if (!template) {
      this.#deps.judge.forget(key);
      this.#waits.delete(key);
      return done;
    }
    const author = await this.#authorCondition(template, signal);
    if (!author) return after(policyRetryMs);
    // No dry run for a template that opens no access because of its author.
    const judged = await this.#deps.judge.judge(template, { mayAsk: author.status === 'True' }, signal);
    const plan = this.#planCondition(template, judged);
    // Without this wait, which the judge usually ends, each edit would cost two writes.
    const waitMs = plan === unplanned ? this.#waitMs(template) : 0;
    if (waitMs > 0) return after(waitMs);
    if (plan !== unplanned) this.#waits.delete(key);
    const updates = [
      this.#durationsCondition(template),
      // Before the target: the summary shows the code of denied requests.
      plan,
      this.#targetCondition(template),
      this.#commandCondition(template),
      author,
      ...this.#gatewayConditions(template),
    ];
    const nowMs = this.#deps.clock.now();
    const kept = template.conditions.filter(
      ({ type }) => type !== gatewayCondition || updates.some((update) => update.type === type),
    );
    const merged = mergeConditions(kept, updates, nowMs, { generation: template.generation });
    const ready = allTrue(
      merged,
      updates.map(({ type }) => type),
    );
    const conditions = summarized(template.generation, merged, summaryOf(updates), nowMs);
    if (ready !== template.ready || !sameConditions(template.conditions, conditions)) {
      const patch = { metadata: { resourceVersion: template.resourceVersion }, status: { conditions, ready } };
      await this.#deps.client.mergePatch(this.#deps.resource, template, patch, { subresource: 'status', signal });
    }
    // No event reports the author's permissions, or what the API server rejects.
    return template.spec.author || plan.reason === refused ? after(recheckMs) : done;
  }

  /** Milliseconds left of `maxWaitMs`. */
  #waitMs({ key, uid, generation }: TemplateView): number {
    const nowMs = this.#deps.clock.monotonic();
    const wait = this.#waits.get(key);
    if (wait?.uid === uid && wait.generation === generation) return wait.untilMs - nowMs;
    this.#waits.set(key, { uid, generation, untilMs: nowMs + maxWaitMs });
    return maxWaitMs;
  }

  #planCondition(template: TemplateView, judged: Judgement | typeof notPlanned): TemplateConditionUpdate {
    const { accessPlanValid } = templateConditions;
    const stored = storedCondition(template, accessPlanValid);
    if (judged === notPlanned) return stored ?? unplanned;
    const { violation, ignored, isUnanswered } = judged;
    if (violation) return failure(accessPlanValid, violation.code, violation.message);
    if (isUnanswered && (stored?.status === 'True' || stored?.reason === refused)) return stored;
    if (ignored === undefined) return success(accessPlanValid, this.#deps.planValidMessage);
    const message = `the API server ignores fields that a Pod does not have: ${ignored}; correct or remove them`;
    return { type: accessPlanValid, status: 'True', reason: fieldsIgnored, message };
  }

  /** Undefined for a new version in a gap. One that the policies did not see stays refused. */
  async #authorCondition(template: TemplateView, signal: AbortSignal): Promise<TemplateConditionUpdate | undefined> {
    const { authorHoldsRights } = templateConditions;
    const { policies, kind } = this.#deps;
    const { username } = template.spec.author ?? {};
    const judged = storedCondition(template, authorHoldsRights);
    if (judged?.reason === 'PoliciesMissing') return judged;
    // That it has no author is no verdict about one.
    const proof =
      judged && judged.reason !== 'AuthorUnknown' ? 'certified' : await policies.certifyVersion(template, signal);
    if (proof === 'gap') return undefined;
    if (proof === 'uncertified') {
      const { code, message } = versionUncertified(kind, template);
      return failure(authorHoldsRights, code, message);
    }
    const violation = await this.#deps.authors.violation(template, acceptedAnswerAgeMs, signal);
    if (violation) return failure(authorHoldsRights, violation.code, violation.message);
    const message =
      username === undefined
        ? 'no author; this installation trusts existing templates'
        : `author ${quote(username)} holds the permissions that the template hands out`;
    return success(authorHoldsRights, message);
  }

  #durationsCondition(template: TemplateView) {
    const { accessConfig } = template.spec;
    const [violation] = verifyDurations(accessConfig);
    return violation
      ? failure(templateConditions.templateDurationsValid, 'NotAcceptable', violation.message)
      : success(
          templateConditions.templateDurationsValid,
          `${accessConfig.defaultDuration} by default, at most ${accessConfig.maxDuration}`,
        );
  }

  #commandCondition({ spec }: TemplateView) {
    const { accessCommandValid } = templateConditions;
    const violation = accessCommandViolation(spec.accessConfig);
    return violation
      ? failure(accessCommandValid, violation.code, violation.message)
      : success(accessCommandValid, 'the access command is one call of kubectl or oc, with the granted pod');
  }

  /** Empty if users of the template need no gateway. */
  #gatewayConditions({ spec }: TemplateView): AccessConditionUpdate<TemplateCondition>[] {
    if (!sessionOf(spec.accessConfig)) return [];
    const violation = gatewayViolation(this.#deps.gateway);
    return [
      violation
        ? failure(gatewayCondition, violation.code, violation.message)
        : success(gatewayCondition, 'the API server forwards calls to the gateway'),
    ];
  }

  #targetCondition(template: TemplateView) {
    const ref = template.spec.controllerTargetRef;
    if (!ref) return success(templateConditions.targetRefExists, 'the template defines the pod in spec.podSpec');
    const { namespace } = template;
    return this.#deps.workload(targetKey(ref, namespace))
      ? success(templateConditions.targetRefExists, `${ref.kind} ${namespace}/${ref.name} exists`)
      : failure(
          templateConditions.targetRefExists,
          'NotFound',
          `${ref.kind} ${quote(ref.name)} does not exist in namespace ${namespace}; create it, or correct spec.controllerTargetRef`,
        );
  }
}

interface TemplateReconcilerDeps {
  readonly resource: Resource;
  readonly templates: Store<TemplateView>;
  /** By `targetKey`. */
  readonly workload: (key: string) => WorkloadView | undefined;
  readonly gateway: Store<GatewayView>;
  readonly authors: TemplateAuthors;
  readonly judge: Pick<TemplateJudge, 'judge' | 'forget'>;
  /** Of AccessPlanValid if it is True. */
  readonly planValidMessage: string;
  readonly kind: TemplateKind;
  readonly policies: PolicyCheck;
  readonly client: Client;
  readonly clock: Clock;
}

const refused = 'ResourceRefused';

type TemplateConditionUpdate = AccessConditionUpdate<TemplateCondition>;

const unplanned: TemplateConditionUpdate = {
  type: templateConditions.accessPlanValid,
  status: 'Unknown',
  reason: notPlanned,
  message:
    'the server has not checked this version yet, because it is checking many templates; requests are accepted meanwhile',
};

/** Of this generation, such as by an earlier leader: stays until the next judgement. */
function storedCondition(
  { conditions, generation }: TemplateView,
  type: TemplateCondition,
): TemplateConditionUpdate | undefined {
  const stored = conditions.find((condition) => condition.type === type && condition.observedGeneration === generation);
  return stored && { type, status: stored.status, reason: stored.reason, message: stored.message };
}

/** Other objects, permissions, the gateway, or a judgement can end these without an edit. */
const needNoEdit: ReadonlySet<string> = new Set([
  'NotFound',
  'TargetNotFound',
  'PodIsSelected',
  'ConfinementLost',
  'AuthorLacksRights',
  'GatewayUnavailable',
  refused,
  notPlanned,
]);

function summaryOf(updates: readonly AccessConditionUpdate<TemplateCondition>[]): Summary {
  const failing = updates.filter(({ status }) => status !== 'True');
  const stalled = failing.find(({ reason }) => !needNoEdit.has(reason));
  const shown = stalled ?? failing[0];
  if (!shown) {
    const ignored = updates.find(({ reason }) => reason === fieldsIgnored);
    const message = 'the server can open access for the users that accessConfig allows';
    return { state: 'ready', reason: 'Ready', message: ignored ? `${message}; ${ignored.message}` : message };
  }
  const { reason, message } = shown;
  return { state: stalled ? 'stalled' : 'reconciling', reason, message };
}
