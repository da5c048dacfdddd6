import type { RequestChild } from '../../api/access/status.ts';
import { type KubeObject, keyOf, type Resource } from '../../api/object.ts';
import { pods, roleBindings, roles } from '../../api/resources.ts';
import { type Clock, formatTime, parseTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { Applier } from '../../rbac/applier.ts';
import type { AccessKind } from '../access-kind.ts';
import type { Plan } from '../builders/plan.ts';
import { type Certified, type PolicyCheck, policiesAwaited, requestUncertified } from '../policies/policy-check.ts';
import { renderAccessCommand } from '../policy/access-command.ts';
import { decidingGroupsOf } from '../policy/emergency-policy.ts';
import type { Violation } from '../policy/policy.ts';
import { refusalCause } from '../policy/refusal-text.ts';
import { gatewayCommand } from '../policy/session-policy.ts';
import { accessEndMs, type RequestView, type TemplateView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import { deniedStatus } from './ended-status.ts';
import { type GrantReporter, withoutRequester } from './grant-reporter.ts';
import type { History } from './history.ts';
import { accessStartMs } from './request-ends.ts';
import type { StatusWriter } from './request-status.ts';
import { type AccessMessage, awaitPolicies, isUnchanged, type Progress, progressStatus } from './request-status.ts';
import type { Revoker } from './revoker.ts';
import { shortenedAccess } from './shortened-access.ts';
import type { TemplateEdits } from './template-edits.ts';

/** Milliseconds to wait for the pod: if it is ready by then, one status write suffices. */
const podGraceMs = 1000;

interface OpenedGrant {
  readonly children: readonly RequestChild[];
  /** Epoch ms of the last creation; 0 if the status already lists the children. */
  readonly atMs: number;
}

/**
 * Opens a decided grant, in this order:
 *   audit line in the journal → Pod → Role → RoleBinding (gives access) → status for the requester
 * After a restart it plans again, and denies the request if the plan has changed.
 */
export class Granter {
  readonly #deps: GranterDeps;
  /** By request uid: children that this process created or adopted, until the status lists them. */
  readonly #opened = new Map<string, OpenedGrant>();
  /** uids of requests whose grant is in the journal, so that a retry adds no second line. */
  readonly #journaled = new Set<string>();

  constructor(deps: GranterDeps) {
    this.#deps = deps;
  }

  /**
   * Opens the grant once, and updates the status. Without `plan`, plans again. Resolves to when to
   * requeue, epoch ms. Rejects with `AuditUnavailable`.
   */
  async ensureOpen(request: RequestView, plan: Plan | undefined, signal: AbortSignal): Promise<number | undefined> {
    // The decider, which made the plan, has asked in the same reconcile.
    const proof = plan || this.#openedEarlier(request) ? 'certified' : await this.#proofOf(request, signal);
    if (proof === 'gap') return awaitPolicies(request, this.#deps, signal);
    if (proof === 'uncertified') return this.#deny(withoutRequester(request), requestUncertified, signal);
    const opened = this.#openedEarlier(request) ?? (await this.#open(request, plan, signal));
    return opened && this.#updateProgress(request, opened, signal);
  }

  #proofOf({ createdAtMs }: RequestView, signal: AbortSignal): Promise<Certified> {
    return this.#deps.policies.certify(createdAtMs, signal);
  }

  forget(uid: string): void {
    this.#opened.delete(uid);
    this.#journaled.delete(uid);
  }

  #openedEarlier(request: RequestView): OpenedGrant | undefined {
    if (request.children.length > 0) return { children: request.children, atMs: 0 };
    return this.#opened.get(request.uid);
  }

  async #open(request: RequestView, decided: Plan | undefined, signal: AbortSignal): Promise<OpenedGrant | undefined> {
    const plan = decided ?? (await this.#replan(request, signal));
    if ('code' in plan) return this.#deny(request, plan, signal);
    await this.#journalOnce(request);
    const children: RequestChild[] = [];
    for (const [resource, object] of inCreationOrder(plan)) {
      const provenance = { ownerUid: request.uid, planHash: plan.hash };
      const created = await this.#deps.applier.create(resource, object, provenance, signal);
      if (created.kind === 'collision') {
        return this.#deny(request, { code: 'NameCollision', message: created.message, status: 422 }, signal);
      }
      if (created.kind === 'refused') {
        const message = `the API server rejected ${resource.kind} ${keyOf(object.metadata)}: ${refusalCause(created.message)}; ask the author of the template or an administrator, then create a new request`;
        return this.#deny(request, { code: 'ResourceRefused', message, status: 422 }, signal);
      }
      // Another client may have created it since the decision, without the policies.
      if (created.kind === 'adopted' && (await this.#proofOf(request, signal)) !== 'certified')
        throw new CodedError('PoliciesMissing', policiesAwaited);
      children.push({
        kind: resource.kind as RequestChild['kind'],
        name: object.metadata.name,
        uid: created.object.metadata.uid ?? '',
      });
    }
    const opened = { children, atMs: this.#deps.clock.now() };
    this.#opened.set(request.uid, opened);
    this.#deps.reporter.opened(request);
    return opened;
  }

  async #journalOnce(request: RequestView): Promise<void> {
    if (this.#journaled.has(request.uid)) return;
    const config = this.#templateOf(request)?.spec.accessConfig;
    await this.#deps.reporter.granted(request, config ? decidingGroupsOf(request.spec, config) : []);
    this.#journaled.add(request.uid);
  }

  async #replan(request: RequestView, signal: AbortSignal): Promise<Plan | Violation> {
    const { grant } = request;
    if (!grant) throw new Error(`request ${request.key} has no grant to plan for`);
    const template = this.#templateOf(request);
    const changed = `template ${grant.template.name} or an object that it uses was changed or deleted after the decision, or the server was upgraded or reconfigured`;
    const planChanged = (remedy: string): Violation => ({
      code: 'PlanChanged',
      message: `${changed}; ${remedy}`,
      status: 422,
    });
    if (!template) return planChanged('create a request for a template that exists');
    const terms = {
      subjects: grant.subjects,
      durationMs: (parseTime(grant.expiresAt) ?? 0) - accessStartMs(request),
      pinned: {
        ...grant.pod,
        rules: grant.rules,
        ...(grant.session ? { session: grant.session } : {}),
      },
    };
    const planned = await this.#deps.kind.plan(request, template, terms, signal);
    if ('violation' in planned) {
      const { code, message } = planned.violation;
      return planChanged(`correct this, then create a new request: ${code}: ${message}`);
    }
    return planned.plan.hash === grant.planHash ? planned.plan : planChanged('create a new request');
  }

  async #deny(request: RequestView, violation: Violation, signal: AbortSignal): Promise<undefined> {
    await this.#deps.revoker.deleteChildren(request, signal);
    const nowMs = this.#deps.clock.now();
    const ended = this.#deps.history.end(request, { how: 'Denied', reason: violation.code }, nowMs);
    await this.#deps.status.write(request, deniedStatus(request, violation, ended, nowMs), signal);
    this.#deps.reporter.denied(request, violation);
  }

  async #updateProgress(request: RequestView, opened: OpenedGrant, signal: AbortSignal): Promise<number | undefined> {
    const pod = this.#podOf(request, opened);
    const nowMs = this.#deps.clock.now();
    if (!pod?.ready && request.children.length === 0 && nowMs < opened.atMs + podGraceMs)
      return opened.atMs + podGraceMs;
    const accessMessage = pod ? this.#accessMessage(request, pod) : { text: '' };
    const progress = { children: opened.children, ...this.#endOf(request), pod, accessMessage };
    const status = progressStatus(request, progress, nowMs);
    if (isUnchanged(request, status)) return undefined;
    await this.#deps.status.write(request, status, signal);
    if (status.ready && !request.ready) this.#deps.reporter.ready(request);
    return undefined;
  }

  #endOf(request: RequestView): Pick<Progress, 'until' | 'expiresAt' | 'shortened'> {
    const grantedEndMs = accessEndMs(request) ?? 0;
    const endMs = Math.min(grantedEndMs, this.#deps.edits.latestEndMs(request));
    const expiresAt = formatTime(endMs);
    const why = endMs < grantedEndMs ? ', because an edit of the template shortened the access' : '';
    const shortened = shortenedAccess(request, { endMs, grantedEndMs });
    return { until: `until ${expiresAt}${why}`, expiresAt, shortened };
  }

  /** By uid, because another Pod may have taken the name. */
  #podOf({ namespace, grant }: RequestView, { children }: OpenedGrant): PodView | undefined {
    const pod = grant && this.#deps.pods.get(keyOf({ namespace, name: grant.pod.name }));
    const uid = grant?.pod.uid ?? children.find(({ kind }) => kind === 'Pod')?.uid;
    return pod?.uid === uid ? pod : undefined;
  }

  #templateOf({ namespace, grant }: RequestView): TemplateView | undefined {
    return this.#deps.kind.templates.get(keyOf({ namespace, name: grant?.template.name ?? '' }));
  }

  #accessMessage(request: RequestView, pod: PodView): AccessMessage {
    const { namespace, name, grant } = request;
    if (grant?.session) return { text: gatewayCommand({ namespace, name, grant }) };
    const template = this.#templateOf(request);
    if (!template) return { text: '' };
    const { accessConfig, controllerTargetRef: ref } = template.spec;
    const { createsPod } = this.#deps.kind;
    const metadataFrom =
      ref && (createsPod ? 'mutationConfig' : (`the Pod template of ${ref.kind} ${ref.name}` as const));
    return renderAccessCommand(accessConfig.accessCommand, { ...pod, metadataFrom });
  }
}

interface GranterDeps {
  readonly kind: AccessKind;
  readonly pods: Store<PodView>;
  readonly applier: Applier;
  readonly revoker: Revoker;
  readonly edits: TemplateEdits;
  readonly policies: PolicyCheck;
  readonly history: History;
  readonly status: StatusWriter;
  readonly reporter: GrantReporter;
  readonly clock: Clock;
}

/** The RoleBinding comes last, because it gives access. */
function inCreationOrder(plan: Plan): readonly (readonly [Resource, KubeObject])[] {
  const rbac = [[roles, plan.role] as const, [roleBindings, plan.roleBinding] as const];
  return plan.pod ? [[pods, plan.pod] as const, ...rbac] : rbac;
}
