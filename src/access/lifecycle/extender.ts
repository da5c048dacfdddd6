import type { RequestedExtension } from '../../api/access/request-spec.ts';
import type { ExtensionStatus } from '../../api/access/status.ts';
import { keyOf } from '../../api/object.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import type { Store } from '../../kube/store.ts';
import { templateState } from '../admission-reads.ts';
import { type PolicyCheck, policiesAwaited, requestUncertified } from '../policies/policy-check.ts';
import { chooseExtension, type Extendable } from '../policy/extension-choice.ts';
import type { Violation } from '../policy/policy.ts';
import { countVotes, votesNeeded } from '../policy/vote-count.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import { awaitedApprovals, deniedBy } from './approval-status.ts';
import type { GrantReporter, JournaledExtension } from './grant-reporter.ts';
import { isDeniedOrEnded } from './request-conditions.ts';
import { decidedExtensions, extendableOf } from './request-ends.ts';
import { extensionStatus, isUnchanged, type StatusWriter } from './request-status.ts';
import { approvalsOf, denialIn, type JudgedVote, type Votes } from './votes.ts';

/** Characters, as in the CRD. */
const maxMessage = 2048;

type Decision =
  | { readonly state: 'Granted'; readonly endMs: number; readonly votes: readonly JudgedVote[] }
  | { readonly state: 'Denied'; readonly violation: Violation }
  | { readonly state: 'Pending'; readonly message: string };

/** Extends open access: an entry in `status.extensions` moves its end. No object changes. */
export class Extender {
  readonly #deps: ExtenderDeps;
  /** By request uid: the last extension in the journal, so that a retry adds no second line. */
  readonly #journaled = new Map<string, string>();

  constructor(deps: ExtenderDeps) {
    this.#deps = deps;
  }

  /**
   * Decides the first undecided extension; its event brings the next. Rejects with a 409 ApiError
   * if the request changed, and with `AuditUnavailable`.
   */
  async extend(request: RequestView, signal: AbortSignal): Promise<RequestView> {
    const { pods } = this.#deps;
    const isEnding = request.revoked || request.deleting || isDeniedOrEnded(request);
    // Without children, access is not open yet.
    if (isEnding || request.children.length === 0) return request;
    const access = extendableOf(request, pods);
    const asked = access && request.spec.extensions?.[access.decided];
    if (!asked) return request;
    if (this.#deps.policies.assess(request.createdAtMs) === 'gap')
      throw new CodedError('PoliciesMissing', policiesAwaited);
    const decision = await this.#decide(request, asked, access, signal);
    switch (decision.state) {
      case 'Pending':
        return this.#write(request, { by: asked.by, ...decision }, signal);
      case 'Denied':
        return this.#refuse(request, asked, decision.violation, signal);
      case 'Granted':
        return this.#grant(request, access, { ...decision, asked }, signal);
    }
  }

  /** Refuses what no one can decide once the request has ended. Does not write it. */
  refuseUndecided(request: RequestView): readonly ExtensionStatus[] | undefined {
    const { grant, spec } = request;
    if (!grant) return undefined;
    const decided = decidedExtensions(request);
    const asked = spec.extensions?.[decided.length];
    if (!asked) return undefined;
    const message = `${undecided.code}: ${undecided.message}`;
    return [...decided, { by: asked.by, state: 'Denied', message }];
  }

  forget(uid: string): void {
    this.#journaled.delete(uid);
  }

  async #decide(
    request: RequestView,
    asked: RequestedExtension,
    access: Extendable,
    signal: AbortSignal,
  ): Promise<Decision> {
    const { votes } = this.#deps;
    const template = this.#readyTemplateOf(request);
    if (!template) {
      const message = `waiting until template ${request.spec.templateName} is ready`;
      return { state: 'Pending', message };
    }
    const { extension, approvals } = template.spec.accessConfig;
    const chosen = chooseExtension(asked, extension, access);
    if ('code' in chosen) return { state: 'Denied', violation: chosen };
    if (!approvals || extension?.approvals === 'None') return { state: 'Granted', endMs: chosen.endMs, votes: [] };

    const question = { about: `Extension-${access.decided + 1}`, needed: votesNeeded(approvals.all) };
    const judged = await votes.judge(request, template, question, signal);
    const denial = denialIn(judged);
    if (denial) return { state: 'Denied', violation: deniedBy(denial, 'extension') };
    const { progress, met } = countVotes(approvals.all, approvalsOf(judged));
    if (!met) return { state: 'Pending', message: awaitedApprovals(progress, approvals.all, access.endMs) };
    const maxMs = Math.min(...met.votes.map((vote) => vote.maxMs ?? Number.POSITIVE_INFINITY));
    const approved = chooseExtension(asked, extension, access, maxMs);
    if ('code' in approved) return { state: 'Denied', violation: approved };
    const uids = new Set(met.votes.map(({ uid }) => uid));
    return { state: 'Granted', endMs: approved.endMs, votes: judged.filter(({ vote }) => uids.has(vote.uid)) };
  }

  /** Only if its reconciler found the current generation ready. */
  #readyTemplateOf({ namespace, spec }: RequestView): TemplateView | undefined {
    const template = this.#deps.templates.get(keyOf({ namespace, name: spec.templateName }));
    const state = template && templateState(template);
    return state?.ready && state.observedGeneration === state.generation ? template : undefined;
  }

  async #grant(
    request: RequestView,
    access: Extendable,
    { asked, endMs, votes }: GrantedExtension,
    signal: AbortSignal,
  ): Promise<RequestView> {
    const proof = await this.#deps.policies.certify(request.createdAtMs, signal);
    if (proof === 'gap') throw new CodedError('PoliciesMissing', policiesAwaited);
    if (proof === 'uncertified') return this.#refuse(request, asked, requestUncertified, signal);
    const expiresAt = formatTime(endMs);
    await this.#journalOnce(request, { number: access.decided + 1, asked, expiresAt, votes });
    signal.throwIfAborted();
    // Access may have ended meanwhile. An extension never opens it again.
    if (this.#deps.clock.now() >= access.endMs) return request;
    const uids = votes.map(({ vote }) => vote.uid);
    const extension: ExtensionStatus = {
      by: asked.by,
      state: 'Granted',
      expiresAt,
      ...(uids.length > 0 ? { votes: uids } : {}),
    };
    const written = await this.#write(request, extension, signal);
    this.#deps.reporter.extended(request, expiresAt);
    return written;
  }

  async #refuse(
    request: RequestView,
    { by }: RequestedExtension,
    violation: Violation,
    signal: AbortSignal,
  ): Promise<RequestView> {
    const message = `${violation.code}: ${violation.message}`.slice(0, maxMessage);
    const written = await this.#write(request, { by, state: 'Denied', message }, signal);
    this.#deps.reporter.extensionRefused(request, violation);
    return written;
  }

  async #journalOnce(request: RequestView, extension: JournaledExtension): Promise<void> {
    const line = `${extension.number} ${extension.expiresAt}`;
    if (this.#journaled.get(request.uid) === line) return;
    await this.#deps.reporter.journalExtension(request, extension);
    this.#journaled.set(request.uid, line);
  }

  async #write(request: RequestView, extension: ExtensionStatus, signal: AbortSignal): Promise<RequestView> {
    const { status, clock } = this.#deps;
    const next = extensionStatus(request, [...decidedExtensions(request), extension], clock.now());
    return isUnchanged(request, next) ? request : status.write(request, next, signal);
  }
}

interface GrantedExtension {
  readonly asked: RequestedExtension;
  /** Epoch ms. */
  readonly endMs: number;
  readonly votes: readonly JudgedVote[];
}

interface ExtenderDeps {
  readonly templates: Store<TemplateView>;
  readonly pods: Store<PodView>;
  readonly status: StatusWriter;
  readonly reporter: GrantReporter;
  readonly votes: Votes;
  readonly policies: PolicyCheck;
  readonly clock: Clock;
}

const undecided = {
  code: 'WrongState',
  message: 'access ended before the server decided the extension; create a new request',
} satisfies Pick<Violation, 'code' | 'message'>;
