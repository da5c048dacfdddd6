import type { Ending } from '../../api/access/ending.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { Store } from '../../kube/store.ts';
import type { Metrics } from '../../observe/metrics.ts';
import type { RequestView } from '../stores/access-views.ts';
import { accessStartMs } from './request-ends.ts';

/** Metrics of the grants of one kind of request. No label names a user. Times are epoch ms. */
export type GrantMetrics = ReturnType<ReturnType<typeof grantMetrics>>;

/** Call it once; the result binds the metrics to a request kind. */
export function grantMetrics(metrics: Metrics) {
  const decisions = metrics.counter({
    name: 'drawbridge_grant_decisions_total',
    help: 'Requests that the leader granted or denied after admission.',
    labels: ['kind', 'verdict', 'code'],
  });
  const revocations = metrics.counter({
    name: 'drawbridge_revocations_total',
    help: 'Grants that ended, by what ended them.',
    labels: ['kind', 'ending'],
  });
  const lag = metrics.histogram({
    name: 'drawbridge_expiry_lag_seconds',
    help: 'From the deadline of a grant until its access was revoked.',
    labels: ['kind'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300],
  });
  const active = metrics.gauge({
    name: 'drawbridge_grants_active',
    help: 'Requests with open access. Every replica counts all, so take the maximum.',
    labels: ['kind'],
  });
  const emergencies = metrics.counter({
    name: 'drawbridge_emergencies_total',
    help: 'Grants of emergency access.',
    labels: ['kind'],
  });
  const oz = ozMetrics(metrics);
  return (kind: string) => ({
    /** Access is not open yet. */
    granted(request: RequestView) {
      decisions.inc({ kind, verdict: 'granted', code: '' });
      if (request.spec.emergency) emergencies.inc({ kind });
      const duration = parseGoDuration(request.spec.duration ?? '');
      if ('ns' in duration) oz.requested.observe(labelsOf(kind, request), toMilliseconds(duration.ns) / 1000);
    },
    ready: (request: RequestView, nowMs: number) =>
      oz.ready.observe(labelsOf(kind, request), Math.max(0, nowMs - accessStartMs(request)) / 1000),
    /** `condition`: the type that shows the code of the violation. */
    denied(request: RequestView, code: string, condition: string) {
      decisions.inc({ kind, verdict: 'denied', code });
      oz.conditionErrors.inc({ ...labelsOf(kind, request), condition });
      oz.terminated.inc({ ...labelsOf(kind, request), reason: ozReasons[code] ?? code });
    },
    /** Closed at `nowMs`; it was to end at `endMs`, if that is known. */
    revoked(request: RequestView, ending: Ending, endMs: number | undefined, nowMs: number) {
      revocations.inc({ kind, ending });
      oz.terminated.inc({ ...labelsOf(kind, request), reason: ozReasons[ending] ?? ending });
      // The monotonic clock may have ended the grant before the wall clock reached the deadline.
      if (ending === 'Expired' && endMs !== undefined) lag.observe({ kind }, Math.max(0, nowMs - endMs) / 1000);
    },
    watch(requests: Store<RequestView>) {
      let open = 0;
      active.set({ kind }, open);
      requests.subscribe((event) => {
        const [before, now] = ['before' in event ? event.before : undefined, 'now' in event ? event.now : undefined];
        open += Number(hasAccess(now)) - Number(hasAccess(before));
        active.set({ kind }, open);
      });
    },
  });
}

/** A request that is being deleted may stay for a time, but its access is closed. */
const hasAccess = (request: RequestView | undefined): boolean =>
  request !== undefined && !request.ended && request.children.length > 0 && !request.deleting;

const labelsOf = (kind: string, { namespace, spec }: RequestView): Record<string, string> => ({
  kind,
  namespace,
  template: spec.templateName,
});

/** Where Oz has another name. Any other reason is the code of the denial, or the ending. */
const ozReasons: Readonly<Record<string, string>> = { Expired: 'expired', InvalidDuration: 'duration_invalid' };

/** The request metrics of Oz, which drawbridge can replace, so that its dashboards keep working. */
function ozMetrics(metrics: Metrics) {
  const labels = ['kind', 'namespace', 'template'];
  return {
    requested: metrics.histogram({
      name: 'oz_access_request_requested_duration_seconds',
      help: 'Durations that granted requests asked for.',
      labels,
      buckets: [900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400, 172_800],
    }),
    ready: metrics.histogram({
      name: 'oz_access_request_ready_seconds',
      help: 'From the start of the granted duration until the access is ready.',
      labels,
      buckets: [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    }),
    terminated: metrics.counter({
      name: 'oz_access_request_terminated_total',
      help: 'Requests that the leader denied after admission, and grants that ended: expired, duration_invalid, the code of another denial, or another ending.',
      labels: [...labels, 'reason'],
    }),
    conditionErrors: metrics.counter({
      name: 'oz_access_request_condition_errors_total',
      help: 'Requests that the leader denied after admission, by the condition that is False.',
      labels: [...labels, 'condition'],
    }),
  };
}
