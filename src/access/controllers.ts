import type { TemplateKind } from '../api/access/names.ts';
import { gatewayApiService } from '../api/gateway/names.ts';
import type { Journal } from '../audit/journal.ts';
import { Controller } from '../engine/controller.ts';
import { deadlines } from '../engine/sources/deadlines.ts';
import { type Emission, fromSubscription } from '../engine/sources/from-subscription.ts';
import { interval } from '../engine/sources/interval.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Projected, Store, StoreEvent } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { Applier } from '../rbac/applier.ts';
import type { RbacRule } from '../rbac/rule-cover.ts';
import { type AccessKind, createAccessKinds } from './access-kind.ts';
import type { AccessPodMode } from './builders/plan.ts';
import { PlanQueue } from './builders/plan-budget.ts';
import { changedReviews, type OwedReviews } from './emergency/owed-reviews.ts';
import { ReviewReconciler } from './emergency/review-reconciler.ts';
import { GatewayWithdrawal, isGatewayPod, type WithdrawalView } from './gateway-withdrawal.ts';
import { Janitor } from './janitor.ts';
import { Extender } from './lifecycle/extender.ts';
import { FactFinder } from './lifecycle/fact-finder.ts';
import { grantMetrics } from './lifecycle/grant-metrics.ts';
import type { GrantQuota } from './lifecycle/grant-quota.ts';
import { GrantReporter } from './lifecycle/grant-reporter.ts';
import { Granter } from './lifecycle/granter.ts';
import { History } from './lifecycle/history.ts';
import { Memories } from './lifecycle/memory.ts';
import { cleanupLane, normalLane, RequestReconciler, revocationLane } from './lifecycle/request-reconciler.ts';
import { Revoker } from './lifecycle/revoker.ts';
import { StatusWriter } from './lifecycle/status-writer.ts';
import { Votes } from './lifecycle/votes.ts';
import type { PolicyCheck } from './policies/policy-check.ts';
import { sessionOf } from './policy/session-policy.ts';
import { orphansMetric, stateMetrics } from './state-metrics.ts';
import { type AccessStores, byNamespace, byTarget, byTemplate, byUid, requestsOfPod } from './stores/access-stores.ts';
import { type RequestView, targetKey } from './stores/access-views.ts';
import type { PodView, RequestRef } from './stores/cluster-views.ts';
import { GrantDryRuns } from './template/grant-dry-runs.ts';
import { JudgementQueue } from './template/judgement-queue.ts';
import { AuthorPermissions, TemplateAuthors } from './template/template-authors.ts';
import { TemplateJudge } from './template/template-judge.ts';
import { type PlanRunner, TemplatePlans } from './template/template-plans.ts';
import { TemplateReconciler } from './template/template-reconciler.ts';

export interface AccessDeps {
  readonly client: Client;
  readonly quota: GrantQuota;
  /** What templates may hand out in addition to the rules of every grant. */
  readonly grantable: readonly RbacRule[];
  /** The server opens no access in its own namespace. */
  readonly serverNamespace: string;
  readonly stores: AccessStores;
  /** At most one object: the record of a withdrawn APIService. */
  readonly withdrawals: Store<WithdrawalView>;
  readonly reviews: OwedReviews;
  readonly policies: PolicyCheck;
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Grants through templates without an author, unless they set `allowPrivilegedPod`. */
  readonly trustExistingTemplates: boolean;
  readonly accessPods: AccessPodMode;
  /** The gateway has the same mode. */
  readonly certificates: 'files' | 'own';
}

/** In start order; each starts once the one before has synced. */
export function accessControllers(deps: AccessDeps): Controller[] {
  const metricsOf = grantMetrics(deps.metrics);
  stateMetrics(deps);
  const permissions = new AuthorPermissions(deps);
  const kinds = createAccessKinds(deps);
  const queue = new JudgementQueue(new PlanQueue(deps.clock), deps.clock);
  const dryRuns = new GrantDryRuns(deps);
  const plansIn = (runner: PlanRunner): TemplatePlans => new TemplatePlans({ ...deps, runner });
  const controllers = kinds.map((kind) => {
    const { stores, trustExistingTemplates: trustExisting } = deps;
    const authors = new TemplateAuthors({ kind: kind.templateKind, permissions, trustExisting });
    const metrics = metricsOf(kind.requestKind);
    const votes = new Votes({ ...deps, ...kind, store: stores.votes });
    const { requestResource } = kind;
    const reporter = new GrantReporter({ ...deps, metrics, requestResource, votes: stores.votes });
    metrics.watch(kind.requests);
    return {
      kind,
      votes,
      reporter,
      templates: templateController(kind, authors, new TemplateJudge({ ...deps, kind, plansIn, dryRuns, queue }), deps),
      requests: requestController(kind, { authors, votes, reporter }, deps),
    };
  });
  return [
    ...controllers.map(({ templates }) => templates),
    ...controllers.map(({ requests }) => requests),
    reviewController(controllers, deps),
    janitorController(kinds, deps),
    gatewayController(deps),
  ];
}

/** With its jitter, the janitor looks for orphans more than once a minute. */
const sweepMs = 50_000;
/** Meanwhile, the request reconciler deletes the children of a deleted or ended request. */
const janitorDelayMs = 1000;

function janitorController(kinds: readonly AccessKind[], deps: AccessDeps): Controller {
  const { clock, metrics, stores } = deps;
  const orphans = orphansMetric(metrics);
  const janitor = new Janitor({
    ...deps,
    kinds,
    applier: new Applier(deps.client.urgent()),
    onOrphan: (kind) => orphans.inc({ kind }),
  });
  const uidOfAdded = (event: StoreEvent<Projected & { readonly requestRef?: RequestRef }>): string[] =>
    event.type === 'added' && event.now.requestRef ? [event.now.requestRef.uid] : [];
  return controller('Janitor', deps, {
    sources: [
      ...[stores.roleBindings, stores.roles, stores.pods].map((store) =>
        fromSubscription(store.resource.plural, store, uidOfAdded),
      ),
      ...kinds.map(({ requests }) =>
        fromSubscription(requests.resource.plural, requests, (event) =>
          deletedOrEndedUid(event).map((key) => ({ key, atMs: clock.now() + janitorDelayMs })),
        ),
      ),
      interval({ name: 'sweep', clock, everyMs: sweepMs, keys: () => janitor.suspects() }),
    ],
    reconciler: janitor,
    workers: 4,
    backoff: { baseMs: 500, capMs: 10_000 },
  });
}

function reviewController(
  kinds: readonly { readonly kind: AccessKind; readonly votes: Votes; readonly reporter: GrantReporter }[],
  deps: AccessDeps,
): Controller {
  const { reviews, stores, client } = deps;
  const { votes } = stores;
  const partsOf = (templateKind: TemplateKind) => {
    const parts = kinds.find(({ kind }) => kind.templateKind === templateKind);
    if (!parts) throw new Error(`a review names the unknown kind ${templateKind}`);
    return parts;
  };
  return controller('EmergencyReview', deps, {
    sources: [
      fromSubscription('review', reviews.store, changedReviews),
      fromSubscription('vote', votes, (event) => {
        const { requestUid, spec } = 'now' in event ? event.now : event.before;
        return spec.about === 'Review' ? [requestUid] : [];
      }),
    ],
    reconciler: new ReviewReconciler({
      reviews,
      votes,
      judgeOf: (kind) => partsOf(kind).votes,
      reviewed: (review, vote) => partsOf(review.templateKind).reporter.reviewed(review, vote),
      client,
    }),
    workers: 1,
  });
}

function templateController(
  kind: AccessKind,
  authors: TemplateAuthors,
  judge: TemplateJudge,
  deps: AccessDeps,
): Controller {
  const { client, clock, stores } = deps;
  const { templates } = kind;
  return controller(kind.templateKind, deps, {
    sources: [
      fromSubscription('template', templates, keyOfEvent),
      ...stores.workloads.map((workloads) =>
        fromSubscription(workloads.resource.plural, workloads, (event) => {
          const { kind: targetKind, name, namespace } = 'now' in event ? event.now : event.before;
          const affected =
            event.type === 'updated'
              ? []
              : templates.byIndex(byTarget, targetKey({ kind: targetKind, name }, namespace));
          return affected.map((template) => template.key);
        }),
      ),
      fromSubscription('gateway', stores.gateway, () =>
        [...templates.list()].filter(({ spec }) => sessionOf(spec.accessConfig)).map(({ key }) => key),
      ),
      judge,
    ],
    reconciler: new TemplateReconciler({
      resource: kind.templateResource,
      templates,
      workload: (key) => stores.workload(key),
      gateway: stores.gateway,
      authors,
      judge,
      planValidMessage: kind.createsPod
        ? 'the server can build the access pod, and no object of the namespace forbids it'
        : 'the workload exists, and its selector is valid',
      kind: kind.templateKind,
      policies: deps.policies,
      client,
      clock,
    }),
    workers: 4,
  });
}

function requestController(
  kind: AccessKind,
  {
    authors,
    votes,
    reporter,
  }: { readonly authors: TemplateAuthors; readonly votes: Votes; readonly reporter: GrantReporter },
  deps: AccessDeps,
): Controller {
  const { client, clock, stores, quota, grantable, reviews, policies } = deps;
  const { pods } = stores;
  const readByBuilders: readonly Store<Projected>[] = [...stores.workloads, ...stores.selectors];
  const memories = new Memories(clock);
  const history = new History({ kind, clock });
  const status = new StatusWriter({ client, kind, clock });
  const parts = { kind, client, pods, status, reporter, policies, memories, clock };
  const revoker = new Revoker({ ...parts, applier: new Applier(client.urgent()) });
  const facts = new FactFinder({ ...parts, votes, authors, revoker, history, quota, reviews, grantable });
  const deadlineSource = deadlines({ name: 'end', clock, lane: revocationLane });
  return controller(kind.requestKind, deps, {
    sources: [
      deadlineSource,
      fromSubscription('request', kind.requests, (event) => emissions([event.key], endsAccess(event))),
      fromSubscription('template', kind.templates, (event) => {
        const requests = kind.requests.byIndex(byTemplate, event.key);
        return emissions(
          requests.filter(hasNoEnd).map(({ key }) => key),
          endsAccess(event),
        );
      }),
      fromSubscription('vote', stores.votes, (event) => {
        const { requestUid, spec } = 'now' in event ? event.now : event.before;
        const keys = kind.requests.byIndex(byUid, requestUid).map(({ key }) => key);
        return emissions(keys, event.type === 'added' && spec.decision === 'Deny');
      }),
      // The reconciler shows the review in the status, and keeps an ended request until it.
      fromSubscription('review', reviews.store, (event) =>
        changedReviews(event).flatMap((uid) => kind.requests.byIndex(byUid, uid).map(({ key }) => key)),
      ),
      fromSubscription('pod', pods, (event) => {
        const pod = 'now' in event ? event.now : event.before;
        const keys = requestsOfPod(kind.requests, pod).filter((key) => hasNoEnd(kind.requests.get(key)));
        // In lane 0, the event of the revoker's own delete could abort the revocation.
        const lane = endsAccess(event) || pod.ended !== undefined ? cleanupLane : normalLane;
        return keys.map((key) => ({ key, lane }));
      }),
      ...(kind.createsPod
        ? []
        : [fromSubscription('running pod', pods, (event) => waitingForPods(kind.requests, event))]),
      // Builders read these, so the controller waits for their sync. Their events enqueue nothing.
      ...readByBuilders.map((store) => fromSubscription(store.resource.plural, store, () => [])),
    ],
    reconciler: new RequestReconciler({
      ...parts,
      facts,
      granter: new Granter({ ...parts, applier: new Applier(client) }),
      extender: new Extender(parts),
      revoker,
      reviews,
      history,
      deadlineSource,
    }),
    lanes: 3,
    workers: 32,
    reservedForUrgentLanes: 4,
    lane0Aborts: true,
    // After an outage of the API server, access ends within two seconds of its return.
    backoff: { baseMs: 100, capMs: 2000 },
  });
}

function gatewayController(deps: AccessDeps): Controller {
  const { stores, withdrawals: records, serverNamespace: namespace } = deps;
  const key = gatewayApiService;
  return controller('GatewayWithdrawal', deps, {
    sources: [
      fromSubscription('gateway', stores.gateway, () => [key]),
      fromSubscription('record', records, () => [key]),
      fromSubscription('pod', stores.pods, (event) =>
        isGatewayPod('now' in event ? event.now : event.before, namespace) ? [key] : [],
      ),
    ],
    reconciler: new GatewayWithdrawal({ ...deps, pods: stores.pods, gateway: stores.gateway, records, namespace }),
    workers: 1,
    backoff: { baseMs: 500, capMs: 10_000 },
  });
}

function controller(
  kind: string,
  { clock, log, metrics }: AccessDeps,
  options: Omit<ConstructorParameters<typeof Controller>[0], 'name' | 'clock' | 'log' | 'metrics'>,
): Controller {
  const name = kind.toLowerCase();
  return new Controller({ name, clock, log, metrics: metrics.controller(name), ...options });
}

/** An ended request ignores its template and pod. A forged `status.ended` has its own event. */
const hasNoEnd = (request: RequestView | undefined): boolean => request?.ended === undefined;

function deletedOrEndedUid(event: StoreEvent<RequestView>): string[] {
  if (event.type === 'deleted') return [event.before.uid];
  return event.type === 'updated' && event.now.ended && !event.before.ended ? [event.now.uid] : [];
}

/** A client revoked a request, or deleted a request, a template, or a pod. */
const endsAccess = (
  event: StoreEvent<Projected & { readonly deleting?: boolean; readonly revoked?: boolean }>,
): boolean => event.type === 'deleted' || event.now.deleting === true || event.now.revoked === true;

/** Several pods often start at once. */
const podSettleMs = 1000;

/** If the pod has started to run. */
function waitingForPods(requests: Store<RequestView>, event: StoreEvent<PodView>): Emission[] {
  const hasStarted =
    event.type !== 'deleted' &&
    event.now.phase === 'Running' &&
    !(event.type === 'updated' && event.before.phase === 'Running');
  if (!hasStarted) return [];
  return requests
    .byIndex(byNamespace, event.now.namespace)
    .filter((request) => request.approval?.state === 'Approved' && !request.grant && hasNoEnd(request))
    .map(({ key }) => ({ key, delayMs: podSettleMs, lane: normalLane }));
}

const emissions = (keys: readonly string[], urgent: boolean): Emission[] =>
  keys.map((key) => ({ key, lane: urgent ? revocationLane : normalLane }));

const keyOfEvent = <T extends { readonly key: string; readonly uid: string; readonly resourceVersion: string }>(
  event: StoreEvent<T>,
): string[] => [event.key];
