import type { Grant } from '../../api/access/grant.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import { keyOf } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
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
  /**
   * The template is not in the store yet, or its reconciler has not observed this generation. A watch event requeues the request.
   */
  | { readonly kind: 'waiting' };

/** Retention of a request without a grant and without a valid duration, milliseconds. */
const defaultRetentionMs = 3_600_000;
/**
 * Maximum retention of a request without a grant, milliseconds. The requester can read the denial for a day, and a long `spec.duration`
 * cannot keep denied requests for years.
 */
const maxRetentionMs = 24 * 3_600_000;
/** Maximum age of the cached answers about an author's permissions that a decision accepts, milliseconds. */
const authorPermissionsMaxAgeMs = 60_000;

/** Replaces a missing requester. The rule `identity` denies it. */
const noRequester = { username: '', uid: '', groups: [] };

const tooLate: Violation = {
  code: 'TooLate',
  message: 'the requested time passed before access could be opened; create a new request',
  status: 422,
};

/** Grants or denies an undecided request in one status write, with an optimistic lock on its resourceVersion, or waits for the template. */
export class Decider {
  readonly #deps: DeciderDeps;

  constructor(deps: DeciderDeps) {
    this.#deps = deps;
  }

  /**
   * When the request ends, epoch ms: at the deadline of its grant. Without a grant, it ends `spec.duration` after its creation: after at
   * most 24 h, and after 1 h if the duration is absent or invalid.
   */
  endOf(request: RequestView): number {
    const granted = request.grant && parseTime(request.grant.expiresAt);
    if (granted !== undefined) return granted;
    const duration = parseGoDuration(request.spec.duration ?? '');
    const retentionMs = 'ns' in duration && duration.ns > 0n ? toMilliseconds(duration.ns) : defaultRetentionMs;
    return request.createdAtMs + Math.min(retentionMs, maxRetentionMs);
  }

  /** Rejects with a 409 ApiError if the request changed, with `SigningKeyUnavailable` until the keys are read, and as the client does. */
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
      (await this.#deps.authors.violation(template, authorPermissionsMaxAgeMs, signal));
    if (violation) return this.#deny(request, violation, signal);
    const duration = chooseDuration(request.spec.duration, template.spec.accessConfig);
    if ('code' in duration) return this.#deny(request, duration, signal);

    if (request.createdAtMs + duration.grantedMs <= this.#deps.clock.now()) return this.#deny(request, tooLate, signal);

    const { rules } = template.spec.accessConfig;
    const ruleViolation = rulesViolation(rules) ?? grantableViolation(rules, this.#deps.grantable);
    if (ruleViolation) return this.#deny(request, ruleViolation, signal);

    const subjects = subjectsOf(template.spec.accessConfig, request.spec.requester ?? noRequester);
    const terms = { subjects, durationMs: duration.grantedMs };
    const planned = await this.#deps.kind.plan(request, template, terms, signal);
    if ('violation' in planned) return this.#deny(request, planned.violation, signal);

    const grant = this.#signedGrant(request, template, planned.plan, duration.grantedMs);
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
    const grantingTemplate = { kind: this.#deps.kind.templateKind, name: template.name, spec: template.spec };
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
        (await alreadyHolds(this.#deps.client, caller, request.namespace, grantingTemplate, signal)),
    });
  }

  /**
   * Only a live read proves that the template does not exist: the store may lag behind, and omits a template that violates its schema. As
   * in the webhook, such a template counts as not found, because no request may wait for an edit.
   */
  async #withoutTemplate(request: RequestView, signal: AbortSignal): Promise<Decision> {
    const { client, kind } = this.#deps;
    const name = { namespace: request.namespace, name: request.spec.templateName };
    const found = await findObject(client, kind.templateResource, name, { signal });
    const read = found && readObject(accessOfTemplate(kind.templateKind).template, found);
    if (read?.ok) return { kind: 'waiting' };
    const template = `${kind.templateKind} ${keyOf(name)}`;
    const [error] = read?.errors ?? [];
    const message = error
      ? `${template} violates its schema: ${error.field} ${error.message}; correct the template, then create a new request`
      : `${template} does not exist; create a request that names an existing template`;
    return this.#deny(request, { code: 'TemplateNotFound', message, field: 'spec.templateName', status: 404 }, signal);
  }

  async #deny(request: RequestView, violation: Violation, signal: AbortSignal): Promise<Decision> {
    await this.#deps.status.write(request, deniedStatus(request, violation, this.#deps.clock.now()), signal);
    this.#deps.reporter.denied(request, violation);
    return { kind: 'denied' };
  }

  #signedGrant(request: RequestView, template: TemplateView, plan: Plan, grantedMs: number): Grant {
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

/** The request without its requester, which is not verified, so that the audit line does not name that user. */
function withoutRequester(request: RequestView): RequestView {
  const { requester: _, ...spec } = request.spec;
  return { ...request, spec };
}
