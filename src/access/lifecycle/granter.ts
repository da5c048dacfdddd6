import type { RequestChild } from '../../api/access/status.ts';
import { type KubeObject, keyOf, type Resource } from '../../api/object.ts';
import { pods, roleBindings, roles } from '../../api/resources.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
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
import type { GrantReporter } from './grant-reporter.ts';
import type { Memories } from './memory.ts';
import { accessStartMs, latestEndMs } from './request-ends.ts';
import type { OpenShown } from './status.ts';
import type { StatusWriter } from './status-writer.ts';

/** Milliseconds to wait for the pod: if it is ready by then, one status write suffices. */
const podGraceMs = 1000;

interface OpenedGrant {
  readonly children: readonly RequestChild[];
  /** Epoch ms of the last creation; 0 if the status already lists the children. */
  readonly atMs: number;
}

/** `recheckMs`: when to call it again, epoch ms. */
export type Opened =
  | { readonly recheckMs: number | undefined }
  /** The caller denies the request. */
  | { readonly violation: Violation }
  | 'unproven';

/**
 * Opens a decided grant, in this order:
 *   audit line in the journal → Pod → Role → RoleBinding (gives access) → status for the requester
 * After a restart it plans again, and denies the request if the plan has changed.
 */
export class Granter {
  readonly #deps: GranterDeps;
  constructor(deps: GranterDeps) {
    this.#deps = deps;
  }

  /**
   * Opens the grant once, and updates the status. Without `plan`, plans again. Rejects with
   * `AuditUnavailable`.
   */
  async ensureOpen(request: RequestView, plan: Plan | undefined, signal: AbortSignal): Promise<Opened> {
    const earlier = this.#openedEarlier(request);
    // The plan of this reconcile is certified.
    const proof = plan || earlier ? 'certified' : await this.#proofOf(request, signal);
    if (proof === 'gap') return 'unproven';
    if (proof === 'uncertified') return { violation: requestUncertified };
    const opened = earlier ?? (await this.#open(request, plan, signal));
    if ('code' in opened) return { violation: opened };
    return { recheckMs: await this.#updateProgress(request, opened, signal) };
  }

  #proofOf({ createdAtMs }: RequestView, signal: AbortSignal): Promise<Certified> {
    return this.#deps.policies.certify(createdAtMs, signal);
  }

  #openedEarlier(request: RequestView): OpenedGrant | undefined {
    if (request.children.length > 0) return { children: request.children, atMs: 0 };
    return this.#deps.memories.of(request).opened;
  }

  async #open(request: RequestView, decided: Plan | undefined, signal: AbortSignal): Promise<OpenedGrant | Violation> {
    const plan = decided ?? (await this.#replan(request, signal));
    if ('code' in plan) return plan;
    await this.#journalOnce(request);
    const children: RequestChild[] = [];
    for (const [resource, object] of inCreationOrder(plan)) {
      const provenance = { ownerUid: request.uid, planHash: plan.hash };
      const created = await this.#deps.applier.create(resource, object, provenance, signal);
      if (created.kind === 'collision') {
        return { code: 'NameCollision', message: created.message, status: 422 };
      }
      if (created.kind === 'refused') {
        const message = `the API server rejected ${resource.kind} ${keyOf(object.metadata)}: ${refusalCause(created.message)}; ask the author of the template or an administrator, then create a new request`;
        return { code: 'ResourceRefused', message, status: 422 };
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
    this.#deps.memories.of(request).opened = opened;
    this.#deps.reporter.opened(request);
    return opened;
  }

  async #journalOnce(request: RequestView): Promise<void> {
    const memory = this.#deps.memories.of(request);
    if (memory.grantJournaled) return;
    const config = this.#templateOf(request)?.spec.accessConfig;
    await this.#deps.reporter.granted(request, config ? decidingGroupsOf(request.spec, config) : []);
    memory.grantJournaled = true;
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

  async #updateProgress(
    request: RequestView,
    { children, atMs }: OpenedGrant,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const pod = this.#podOf(request, children);
    const isListed = request.children.length > 0;
    if (!pod?.ready && !isListed && this.#deps.clock.now() < atMs + podGraceMs) return atMs + podGraceMs;
    const accessMessage = pod ? this.#accessMessage(request, pod) : { text: '' };
    const grantedEndMs = accessEndMs(request) ?? 0;
    const endMs = Math.min(grantedEndMs, latestEndMs(request, this.#templateOf(request)));
    const shown: OpenShown = { is: 'open', children, endMs, grantedEndMs, pod, accessMessage };
    const written = await this.#deps.status.show(request, shown, signal);
    if (written.ready && !request.ready) this.#deps.reporter.ready(request);
    return undefined;
  }

  /** By uid, because another Pod may have taken the name. */
  #podOf({ namespace, grant }: RequestView, children: readonly RequestChild[]): PodView | undefined {
    const pod = grant && this.#deps.pods.get(keyOf({ namespace, name: grant.pod.name }));
    const uid = grant?.pod.uid ?? children.find(({ kind }) => kind === 'Pod')?.uid;
    return pod?.uid === uid ? pod : undefined;
  }

  #templateOf({ namespace, grant }: RequestView): TemplateView | undefined {
    return this.#deps.kind.templates.get(keyOf({ namespace, name: grant?.template.name ?? '' }));
  }

  #accessMessage(request: RequestView, pod: PodView): OpenShown['accessMessage'] {
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
  readonly policies: PolicyCheck;
  readonly status: StatusWriter;
  readonly memories: Memories;
  readonly reporter: GrantReporter;
  readonly clock: Clock;
}

/** The RoleBinding comes last, because it gives access. */
function inCreationOrder(plan: Plan): readonly (readonly [Resource, KubeObject])[] {
  const rbac = [[roles, plan.role] as const, [roleBindings, plan.roleBinding] as const];
  return plan.pod ? [[pods, plan.pod] as const, ...rbac] : rbac;
}
