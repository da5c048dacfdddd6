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
  /** The template is not in the store yet, or its reconciler has not observed this generation. A watch event requeues the request. */
  | { readonly kind: 'waiting' };

/** How long a request without a grant and without a readable duration is kept, milliseconds. */
const defaultRetentionMs = 3_600_000;
/**
 * Longest time that a request without a grant is kept, milliseconds. A requester can still read the denial the next morning, and a long
 * `spec.duration` cannot keep denied requests for years.
 */
const maxRetentionMs = 24 * 3_600_000;
/** Oldest cached answer about an author's permissions that a decision accepts, milliseconds. */
const authorRightsMaxAgeMs = 60_000;

/** Stands in for a missing requester; the `identity` rule denies it. */
const noRequester = { username: '', uid: '', groups: [] };

const tooLate: Violation = {
  code: 'TooLate',
  message: 'the requested time passed before access could be opened; create a new request',
  status: 422,
};

/** Grants or denies an undecided request. Either is one status write, guarded by the request's resourceVersion. */
export class Decider {
  readonly #deps: DeciderDeps;

  constructor(deps: DeciderDeps) {
    this.#deps = deps;
  }

  /**
   * When the request ends, epoch ms: the deadline of its grant. Without a grant, its creation plus `spec.duration`: at most 24 h, and 1 h
   * if the duration is absent or cannot be parsed.
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

  /** The store may lag behind a template that was just created, so only a live read proves that it does not exist. */
  async #withoutTemplate(request: RequestView, signal: AbortSignal): Promise<Decision> {
    const name = { namespace: request.namespace, name: request.spec.templateName };
    if (await findObject(this.#deps.client, this.#deps.kind.templateResource, name, { signal }))
      return { kind: 'waiting' };
    const message = `${this.#deps.kind.templateKind} ${keyOf(name)} does not exist; create a request that names an existing template`;
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
  /** The rules that templates may hand out in addition to those of every grant. */
  readonly grantable: readonly RbacRule[];
}

/** The request without its requester. Nothing proves that claim, so the audit line must not name that user. */
function withoutRequester(request: RequestView): RequestView {
  const { requester: _, ...spec } = request.spec;
  return { ...request, spec };
}
