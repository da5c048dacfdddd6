import type { Clock } from '../kit/clock.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { CounterMetric, GaugeMetric, Metrics } from '../observe/metrics.ts';
import type { OwedReviews } from './emergency/owed-reviews.ts';
import { type AccessStores, byRequest, byUid } from './stores/access-stores.ts';
import { accessEndMs, type RequestView } from './stores/access-views.ts';
import type { RequestRef } from './stores/cluster-views.ts';

interface StateMetricsDeps {
  readonly metrics: Metrics;
  readonly stores: AccessStores;
  readonly clock: Clock;
  readonly reviews: OwedReviews;
}

/** See `Janitor`. */
export const orphansMetric = (metrics: Metrics): CounterMetric =>
  metrics.counter({
    name: 'drawbridge_orphans_total',
    help: 'Objects that the janitor deleted: their request did not exist, had ended, did not list them, or was over 60 s past its deadline. Usually, a client removed the finalizer of a request.',
    labels: ['kind'],
  });

/** Counted in the stores at each scrape. No label names a user. */
export function stateMetrics({ metrics, stores, clock, reviews }: StateMetricsDeps): void {
  const { requests } = stores;
  metrics.collected(
    {
      name: 'drawbridge_reviews_overdue',
      help: 'Overdue reviews of emergency access.',
      labels: [],
    },
    (set) => set({}, reviews.overdue().length),
  );
  metrics.collected(
    {
      name: 'drawbridge_grants_past_expiry',
      help: 'Requests past their deadline whose RoleBinding still grants access.',
      labels: ['kind'],
    },
    (set) => {
      for (const store of requests) {
        const overdue = [...store.list()].filter((request) => isPastExpiry(request) && isOpen(request));
        set({ kind: store.resource.kind }, overdue.length);
      }
    },
  );
  metrics.collected(
    {
      name: 'drawbridge_drift_objects',
      help: 'Objects of grants that do not match the requests. orphaned: without a request, and not being deleted or still giving access. missing: listed by a request, but deleted or replaced, or a Role or RoleBinding with a changed label or owner, or without its plan hash. Above 0 for minutes, another client changes them.',
      labels: ['kind', 'drift'],
    },
    (set) => {
      for (const store of [stores.pods, stores.roles, stores.roleBindings]) {
        const { kind } = store.resource;
        set({ kind, drift: 'orphaned' }, [...store.list()].filter(isOrphaned).length);
        set({ kind, drift: 'missing' }, missingIn(store, kind));
      }
    },
  );
  metrics.collected(
    {
      name: 'oz_access_requests',
      help: 'Requests that exist. The user is redacted.',
      labels: ['kind', 'namespace', 'template', 'user', 'ready'],
    },
    (set) =>
      count(
        set,
        requests.flatMap((store) => [...store.list()].map((request) => labelsOf(store, request))),
      ),
  );
  metrics.collected(
    {
      name: 'oz_access_templates',
      help: 'Templates that exist, one series each.',
      labels: ['kind', 'namespace', 'name', 'ready'],
    },
    (set) => {
      for (const store of stores.templates) {
        for (const { namespace, name, ready } of store.list()) {
          set({ kind: store.resource.kind, namespace, name, ready: String(ready ?? false) }, 1);
        }
      }
    },
  );

  const isPastExpiry = (request: RequestView): boolean =>
    clock.now() >= (accessEndMs(request) ?? Number.POSITIVE_INFINITY);

  const isOpen = ({ uid }: RequestView): boolean =>
    stores.roleBindings.byIndex(byRequest, uid).some(({ nothingToRevoke }) => !nothingToRevoke);

  const isOrphaned = ({
    requestRef,
    nothingToRevoke,
  }: {
    readonly requestRef?: RequestRef;
    readonly nothingToRevoke: boolean;
  }): boolean =>
    requestRef !== undefined &&
    !nothingToRevoke &&
    requests.every((store) => store.byIndex(byUid, requestRef.uid).length === 0);

  const missingIn = (store: Store<Projected>, kind: string): number =>
    requests
      .flatMap((requestStore) => [...requestStore.list()])
      .filter(({ deleting }) => !deleting)
      .flatMap(({ namespace, children }) => children.map((child) => ({ ...child, namespace })))
      .filter((child) => child.kind === kind && store.get(`${child.namespace}/${child.name}`)?.uid !== child.uid)
      .length;
}

const labelsOf = (store: Store<RequestView>, { namespace, spec, ready }: RequestView): Record<string, string> => ({
  kind: store.resource.kind,
  namespace,
  template: spec.templateName,
  // Oz, whose metrics these were, redacts this label by default.
  user: 'redacted',
  ready: String(ready),
});

function count(set: GaugeMetric['set'], series: readonly Record<string, string>[]): void {
  const counts = new Map<string, { labels: Record<string, string>; value: number }>();
  for (const labels of series) {
    const key = JSON.stringify(labels);
    counts.set(key, { labels, value: (counts.get(key)?.value ?? 0) + 1 });
  }
  for (const { labels, value } of counts.values()) set(labels, value);
}
