import type { Grant } from '../../api/access/grant.ts';
import { keyOf } from '../../api/object.ts';
import { type Clock, formatTime, parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { subjectsOf } from '../../rbac/roles.ts';
import type { RbacRule } from '../../rbac/rule-cover.ts';
import type { AccessKind } from '../access-kind.ts';
import { alreadyHolds, templateState } from '../admission-reads.ts';
import type { Plan } from '../builders/plan.ts';
import { chooseDuration } from '../policy/duration-choice.ts';
import { grantableViolation, rulesViolation } from '../policy/granted-rules.ts';
import { firstViolation, type Violation } from '../policy/policy.ts';
import { grantPolicy, isEligibleByGroup } from '../policy/request-policy.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { TemplateAuthors } from '../template/template-authors.ts';
import type { GrantQuota } from './grant-quota.ts';
import type { GrantReporter } from './grant-reporter.ts';
import type { StatusWriter } from './request-status.ts';
import { deniedStatus, grantedStatus } from './request-status.ts';
import type { RequesterAttestations } from './requester-attestations.ts';

type Decision =
  | { readonly kind: 'granted'; readonly request: RequestView; readonly plan: Plan }
  | { readonly kind: 'denied' }
  /** The template is not known yet, or nobody has looked at it in its present form; a watch will tell. */
  | { readonly kind: 'waiting' };

const defaultRetentionMs = 3_600_000;
/**
 * How long a request without a grant is kept at most, milliseconds: long enough to be found the next morning, and nobody fills the
 * namespace with refusals that stay for years by asking for long.
 */
const maxRetentionMs = 24 * 3_600_000;
/** What was found out about an author this recently needs no asking again, milliseconds. */
const authorRightsMaxAgeMs = 60_000;

/** Stands in for a requester that is not there; no rule book lets it pass. */
const noRequester = { username: '', uid: '', groups: [] };

const tooLate: Violation = {
  code: 'TooLate',
  message: 'the time asked for was over before access could be opened; make a new request',
  status: 422,
};

/** Turns an undecided request into a grant or a terminal no. Either is one status write, fenced by the request's resourceVersion. */
export class Decider {
  readonly #deps: DeciderDeps;

  constructor(deps: DeciderDeps) {
    this.#deps = deps;
  }

  /**
   * When the request ends, epoch ms: the grant's deadline; without a grant its creation plus what it asked for, 24 h at most, 1 h when
   * that cannot be read.
   */
  endOf(request: RequestView): number {
    const granted = request.grant && parseTime(request.grant.expiresAt);
    if (granted !== undefined) return granted;
    const asked = request.spec.duration === undefined ? undefined : parseGoDuration(request.spec.duration);
    const askedMs = asked && 'ns' in asked && asked.ns > 0n ? toMilliseconds(asked.ns) : defaultRetentionMs;
    return request.createdAtMs + Math.min(askedMs, maxRetentionMs);
  }

  async decide(request: RequestView, signal: AbortSignal): Promise<Decision> {
    const attestationViolation = await this.#deps.attestations.violation(request, signal);
    if (attestationViolation) return this.#deny(withoutRequester(request), attestationViolation, signal);
    const template = this.#deps.kind.templates.get(
      keyOf({ namespace: request.namespace, name: request.spec.templateName }),
    );
    if (!template) return this.#withoutTemplate(request, signal);
    const state = templateState(template);
    if (state.found && state.observedGeneration !== state.generation) return { kind: 'waiting' };

    const violation =
      (await this.#policyViolation(request, template, signal)) ??
      (await this.#deps.authors.violation(template, authorRightsMaxAgeMs, signal));
    if (violation) return this.#deny(request, violation, signal);
    const duration = chooseDuration(request.spec.duration, template.spec.accessConfig);
    if ('code' in duration) return this.#deny(request, duration, signal);

    if (request.createdAtMs + duration.grantedMs <= this.#deps.clock.now()) return this.#deny(request, tooLate, signal);

    const { rules } = template.spec.accessConfig;
    const ruleViolation = rulesViolation(rules) ?? grantableViolation(rules, this.#deps.grantable);
    if (ruleViolation) return this.#deny(request, ruleViolation, signal);

    const subjects = subjectsOf(template.spec.accessConfig, request.spec.requester ?? noRequester);
    const asked = { subjects, durationMs: duration.grantedMs };
    const planned = await this.#deps.kind.plan(request, template, asked, signal);
    if ('refusal' in planned) return this.#deny(request, planned.refusal, signal);

    const grant = this.#grant(request, template, planned.plan, duration.grantedMs);
    const quotaViolation = this.#deps.quota.reserve(request, grant, template.spec.accessConfig.maxGrants);
    if (quotaViolation) return this.#deny(request, quotaViolation, signal);
    const details = { duration: duration.message, notes: planned.plan.notes ?? [] };
    const status = grantedStatus(request, grant, details, this.#deps.clock.now());
    return { kind: 'granted', request: await this.#deps.status.write(request, status, signal), plan: planned.plan };
  }

  async #policyViolation(
    request: RequestView,
    template: TemplateView,
    signal: AbortSignal,
  ): Promise<Violation | undefined> {
    const caller = request.spec.requester ?? noRequester;
    const byGroup = isEligibleByGroup(caller, template.spec.accessConfig.allowedGroups);
    const asked = { kind: this.#deps.kind.templateKind, name: template.name, spec: template.spec };
    return firstViolation(grantPolicy, {
      operation: 'CREATE',
      kind: this.#deps.kind.requestKind,
      namespace: request.namespace,
      name: request.name,
      templateName: request.spec.templateName,
      caller,
      spec: request.spec,
      template: templateState(template),
      alreadyHolds:
        !byGroup &&
        caller.username !== '' &&
        (await alreadyHolds(this.#deps.client, caller, request.namespace, asked, signal)),
    });
  }

  /** The store may lag behind a template made a moment ago, so only a live read may say that there is none. */
  async #withoutTemplate(request: RequestView, signal: AbortSignal): Promise<Decision> {
    const name = { namespace: request.namespace, name: request.spec.templateName };
    if (await findObject(this.#deps.client, this.#deps.kind.templateResource, name, { signal }))
      return { kind: 'waiting' };
    const message = `${this.#deps.kind.templateKind} ${keyOf(name)} does not exist`;
    const violation = { code: 'TemplateNotFound', message, field: 'spec.templateName', status: 404 } as const;
    return this.#deny(request, violation, signal);
  }

  async #deny(request: RequestView, violation: Violation, signal: AbortSignal): Promise<Decision> {
    await this.#deps.status.write(request, deniedStatus(request, violation, this.#deps.clock.now()), signal);
    this.#deps.reporter.denied(request, violation);
    return { kind: 'denied' };
  }

  #grant(request: RequestView, template: TemplateView, plan: Plan, grantedMs: number): Grant {
    return this.#deps.signer.signGrant(request, {
      template: {
        kind: this.#deps.kind.templateKind,
        name: template.name,
        uid: template.uid,
        generation: template.generation,
      },
      subjects: plan.subjects,
      pod: plan.target,
      rules: plan.rules,
      planHash: plan.hash,
      expiresAt: formatTime(request.createdAtMs + grantedMs),
    });
  }
}

interface DeciderDeps {
  readonly kind: AccessKind;
  readonly client: Client;
  readonly clock: Clock;
  readonly status: StatusWriter;
  readonly reporter: GrantReporter;
  readonly attestations: RequesterAttestations;
  readonly authors: TemplateAuthors;
  readonly signer: Signer;
  readonly quota: GrantQuota;
  /** What templates may hand out besides what every grant gives. */
  readonly grantable: readonly RbacRule[];
}

/** Without the requester that it claims: an audit line must not name somebody who may have nothing to do with it. */
function withoutRequester(request: RequestView): RequestView {
  const { requester: _, ...spec } = request.spec;
  return { ...request, spec };
}
