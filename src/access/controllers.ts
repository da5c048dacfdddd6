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
import type { AccessPods } from './builders/plan.ts';
import { Janitor } from './janitor.ts';
import { Decider } from './lifecycle/decider.ts';
import { type GrantMetrics, grantMetrics } from './lifecycle/grant-metrics.ts';
import type { GrantQuota } from './lifecycle/grant-quota.ts';
import { GrantReporter } from './lifecycle/grant-reporter.ts';
import { Granter } from './lifecycle/granter.ts';
import { cleanupLane, normalLane, RequestReconciler, revocationLane } from './lifecycle/request-reconciler.ts';
import { StatusWriter } from './lifecycle/request-status.ts';
import { RequesterAttestations } from './lifecycle/requester-attestations.ts';
import { Revoker } from './lifecycle/revoker.ts';
import { TemplateEdits } from './lifecycle/template-edits.ts';
import type { Signer } from './signing/signer.ts';
import { orphansMetric, stateMetrics } from './state-metrics.ts';
import { type AccessStores, byTarget, byTemplate, requestsOfPod } from './stores/access-stores.ts';
import { targetKey } from './stores/access-views.ts';
import type { RequestRef } from './stores/cluster-views.ts';
import { AuthorPermissions, TemplateAuthors } from './template/template-authors.ts';
import { TemplateReconciler } from './template/template-reconciler.ts';

/** Dependencies of the controllers of the access feature. */
export interface AccessDeps {
  readonly client: Client;
  readonly signer: Signer;
  readonly quota: GrantQuota;
  /** The rules that templates may hand out in addition to those of every grant. */
  readonly grantable: readonly RbacRule[];
  readonly stores: AccessStores;
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Whether the server grants through templates without an author, unless they set `allowPrivilegedPod`. */
  readonly trustExistingTemplates: boolean;
  readonly accessPods: AccessPods;
}

/** The controllers of the access feature, in start order: templates, requests, janitor. Each starts once the one before has synced. */
export function accessControllers(deps: AccessDeps): Controller[] {
  const metricsOf = grantMetrics(deps.metrics);
  stateMetrics(deps);
  const permissions = new AuthorPermissions(deps);
  const kinds = createAccessKinds(deps);
  const controllers = kinds.map((kind) => {
    const { signer, trustExistingTemplates: trustExisting } = deps;
    const authors = new TemplateAuthors({ kind: kind.templateKind, signer, permissions, trustExisting });
    return {
      templates: templateController(kind, authors, deps),
      requests: requestController(kind, authors, deps, metricsOf(kind.requestKind)),
    };
  });
  return [
    ...controllers.map(({ templates }) => templates),
    ...controllers.map(({ requests }) => requests),
    janitorController(kinds, deps),
  ];
}

/** Interval of the janitor's sweep, milliseconds. Even with its jitter, it is below the documented minute. */
const sweepMs = 50_000;
/** Delay before the janitor checks the children of a deleted request, milliseconds. Meanwhile, the request reconciler deletes them. */
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
          event.type === 'deleted' ? [{ key: event.before.uid, atMs: clock.now() + janitorDelayMs }] : [],
        ),
      ),
      interval({ name: 'sweep', clock, everyMs: sweepMs, keys: () => janitor.suspects() }),
    ],
    reconciler: janitor,
    workers: 4,
    // The longest delay between retries is also below the documented minute.
    backoff: { baseMs: 500, capMs: 10_000 },
  });
}

function templateController(kind: AccessKind, authors: TemplateAuthors, deps: AccessDeps): Controller {
  const { client, clock, stores, signer } = deps;
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
    ],
    reconciler: new TemplateReconciler({
      resource: kind.templateResource,
      templates,
      workload: (key) => stores.workload(key),
      authors,
      signer,
      client,
      clock,
    }),
    workers: 4,
  });
}

function requestController(
  kind: AccessKind,
  authors: TemplateAuthors,
  deps: AccessDeps,
  metrics: GrantMetrics,
): Controller {
  const { client, clock, stores, signer, quota, grantable } = deps;
  const { pods } = stores;
  const readByBuilders: readonly Store<Projected>[] = [...stores.workloads, ...stores.selectors];
  const reporter = new GrantReporter({ ...deps, metrics, requestResource: kind.requestResource });
  const status = new StatusWriter({ client, kind, clock });
  const applier = new Applier(client);
  const revoker = new Revoker({ kind, pods, client, applier: new Applier(client.urgent()), reporter, clock });
  const edits = new TemplateEdits({ kind, client });
  const granter = new Granter({ kind, pods, applier, revoker, edits, signer, status, reporter, clock });
  const attestations = new RequesterAttestations({ kind: kind.requestKind, signer, clock });
  const decider = new Decider({
    kind,
    client,
    clock,
    status,
    reporter,
    attestations,
    authors,
    signer,
    quota,
    grantable,
  });
  metrics.watch(kind.requests);
  const deadlineSource = deadlines({ name: 'end', clock, lane: revocationLane });
  return controller(kind.requestKind, deps, {
    sources: [
      deadlineSource,
      fromSubscription('request', kind.requests, (event) => emissions([event.key], endsAccess(event))),
      fromSubscription('template', kind.templates, (event) => {
        const requests = kind.requests.byIndex(byTemplate, event.key);
        return emissions(
          requests.map(({ key }) => key),
          endsAccess(event),
        );
      }),
      fromSubscription('pod', pods, (event) => {
        const keys = requestsOfPod(kind.requests, 'now' in event ? event.now : event.before);
        // The revoker deletes the pod itself. In lane 0, that event could abort a revocation that runs in the normal lane.
        return keys.map((key) => ({ key, lane: endsAccess(event) ? cleanupLane : normalLane }));
      }),
      // Builders read these stores, so the controller waits until they have synced. Later changes do not affect a grant.
      ...readByBuilders.map((store) => fromSubscription(store.resource.plural, store, () => [])),
    ],
    reconciler: new RequestReconciler({
      decider,
      granter,
      revoker,
      attestations,
      edits,
      signer,
      status,
      clock,
      deadlineSource,
    }),
    lanes: 3,
    workers: 32,
    reservedForUpperLanes: 4,
    lane0Aborts: true,
    // If the API server is unavailable at the end of a grant, the server retries within two seconds of its return.
    backoff: { baseMs: 100, capMs: 2000 },
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

/** Whether the event ends access: a user revoked a request, or deleted a request, a template, or a pod. */
const endsAccess = (
  event: StoreEvent<Projected & { readonly deleting?: boolean; readonly revoked?: boolean }>,
): boolean => event.type === 'deleted' || event.now.deleting === true || event.now.revoked === true;

const emissions = (keys: readonly string[], urgent: boolean): Emission[] =>
  keys.map((key) => ({ key, lane: urgent ? revocationLane : normalLane }));

const keyOfEvent = <T extends { readonly key: string; readonly uid: string; readonly resourceVersion: string }>(
  event: StoreEvent<T>,
): string[] => [event.key];
