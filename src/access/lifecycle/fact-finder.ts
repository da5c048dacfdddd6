import { accessOfTemplate } from '../../api/access/kinds.ts';
import { keyOf } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import type { Clock } from '../../kit/clock.ts';
import { parseTime } from '../../kit/clock.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import type { RbacRule } from '../../rbac/rule-cover.ts';
import type { AccessKind } from '../access-kind.ts';
import { alreadyHolds } from '../admission-reads.ts';
import type { OwedReviews } from '../emergency/owed-reviews.ts';
import type { PolicyCheck } from '../policies/policy-check.ts';
import type { Violation } from '../policy/policy.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import type { TemplateAuthors } from '../template/template-authors.ts';
import type { Facts, Look, Looked } from './facts.ts';
import type { GrantQuota } from './grant-quota.ts';
import type { History } from './history.ts';
import type { Memories } from './memory.ts';
import { accessStartMs, extendableOf } from './request-ends.ts';
import type { Revoker } from './revoker.ts';
import type { Votes } from './votes.ts';

/** Of cached permissions of the author. */
const authorPermissionsMaxAgeMs = 60_000;

interface FactFinderDeps {
  readonly kind: AccessKind;
  readonly client: Client;
  readonly clock: Clock;
  readonly pods: Store<PodView>;
  readonly votes: Votes;
  readonly authors: TemplateAuthors;
  readonly revoker: Revoker;
  readonly history: History;
  readonly quota: GrantQuota;
  readonly reviews: OwedReviews;
  readonly policies: PolicyCheck;
  readonly memories: Memories;
  /** What templates may hand out in addition to the rules of every grant. */
  readonly grantable: readonly RbacRule[];
}

/** Finds the facts by which `next` decides: what takes no call at once, the rest when it asks. */
export class FactFinder {
  readonly #deps: FactFinderDeps;

  constructor(deps: FactFinderDeps) {
    this.#deps = deps;
  }

  facts(request: RequestView): Facts {
    const { kind, grantable, quota, reviews, policies, votes, memories } = this.#deps;
    const { uid, namespace, spec, ended, createdAtMs } = request;
    const memory = memories.of(request);
    const changing = this.changing(request);
    const of = { namespace, templateKind: kind.templateKind, template: spec.templateName };
    const fromMs = ended ? (parseTime(ended.at) ?? 0) : accessStartMs(request);
    return {
      kind,
      grantable,
      ...changing,
      endClockMs: memory.deadline.nowMs(fromMs),
      cause: memory.cause,
      isRemoved: this.#deps.revoker.hasRemoved(request),
      owed: reviews.of(uid),
      overdue: spec.emergency && spec.requester ? reviews.overdueOf({ user: spec.requester, ...of }) : undefined,
      proof: policies.assess(createdAtMs),
      mayBeDenied: votes.mayBeDenied(request),
      isLimited: quota.mayDeny(changing.template?.spec.accessConfig.maxGrants),
      ...(memory.withinMaximum ? { surplus: [] } : {}),
    };
  }

  /** What can differ once access was opened. */
  changing(request: RequestView): Pick<Facts, 'template' | 'access'> {
    const { kind, pods } = this.#deps;
    const { namespace, spec, grant } = request;
    return {
      // A grant is there even if the spec is invalid.
      template: kind.templates.get(keyOf({ namespace, name: grant?.template.name ?? spec.templateName })),
      access: extendableOf(request, pods),
    };
  }

  async find(look: Look, request: RequestView, { template }: Facts, signal: AbortSignal): Promise<Looked> {
    const { revoker, votes, authors, policies, history, quota, kind, clock } = this.#deps;
    switch (look.at) {
      case 'lost':
        return { lost: (request.grant && (await revoker.lostPrerequisite(request, request.grant, signal))) ?? null };
      case 'denial':
        return { denial: (template && (await votes.storedDenial(request, template, signal))) ?? null };
      case 'absence':
        return { absence: await this.#absence(request, signal) };
      case 'reviewVotes':
        return { reviewVotes: await this.#reviewVotes(request, signal) };
      case 'certified':
        return { certified: await policies.certify(request.createdAtMs, signal) };
      case 'surplus':
        return { surplus: history.surplus(request, (other) => revoker.hasRemoved(other)) };
    }
    if (!template) throw new Error(`request ${request.key} has no template to look at`);
    switch (look.at) {
      case 'held':
        return { held: await this.#holds(request, template, signal) };
      case 'author':
        return { author: (await authors.violation(template, authorPermissionsMaxAgeMs, signal)) ?? null };
      case 'votes': {
        const { about, needed } = look;
        if (needed === undefined && !votes.mayBeDenied(request)) return { votes: [] };
        return { votes: await votes.judge(request, template, { about, needed: needed ?? 0 }, signal) };
      }
      case 'plan':
        return { plan: { planned: await kind.plan(request, template, look.terms, signal), doneMs: clock.now() } };
      case 'limit':
        return { limit: quota.reserve(request, look.grant, template.spec.accessConfig.maxGrants) ?? null };
    }
  }

  /** Of open access once for each version of the template, of a decision each time. */
  async #holds(request: RequestView, template: TemplateView, signal: AbortSignal): Promise<boolean> {
    const { client, kind, memories } = this.#deps;
    const memory = memories.of(request);
    const { requester } = request.spec;
    if (request.grant && memory.heldAtGeneration === template.generation) return true;
    const granting = { kind: kind.templateKind, name: template.name, spec: template.spec };
    const holds = !!requester && (await alreadyHolds(client, requester, request.namespace, granting, signal));
    if (holds && request.grant) memory.heldAtGeneration = template.generation;
    return holds;
  }

  /** Only a live read proves it. A template that violates its schema counts as not found. */
  async #absence({ namespace, spec }: RequestView, signal: AbortSignal): Promise<Violation | null> {
    const { client, kind } = this.#deps;
    const name = { namespace, name: spec.templateName };
    const found = await findObject(client, kind.templateResource, name, { signal });
    const read = found && readObject(accessOfTemplate(kind.templateKind).template, found);
    if (read?.ok) return null;
    const template = `${kind.templateKind} ${keyOf(name)}`;
    const [error] = read?.errors ?? [];
    const message = error
      ? `${template} violates its schema: ${error.field} ${error.message}; ask its author to correct it, then create a new request`
      : `${template} does not exist; create a request that names an existing template`;
    return { code: 'TemplateNotFound', message, field: 'spec.templateName', status: 404 };
  }

  #reviewVotes({ namespace, uid: requestUid, spec }: RequestView, signal: AbortSignal) {
    const { username: user = '', uid: userUid = '' } = spec.requester ?? {};
    const review = { namespace, requestUid, template: spec.templateName, user, userUid };
    return this.#deps.votes.judgeReview(review, signal);
  }
}
