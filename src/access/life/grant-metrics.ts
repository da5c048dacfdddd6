import { parseTime } from '../../kit/clock.ts';
import type { Store } from '../../kube/store.ts';
import type { Metrics } from '../../observe/metrics.ts';
import type { RequestView } from '../stores/views.ts';
import type { Ending } from './ending.ts';

/** What an operator watches of the grants of one kind of request. No identities. */
export interface GrantMetrics {
  granted(): void;
  /** `code` of the violation. */
  denied(code: string): void;
  /** Access of `request` was closed at `nowMs` (epoch ms). */
  revoked(request: RequestView, ending: Ending, nowMs: number): void;
  /** Keeps `drawbridge_grants_active` at the number of requests in the store that have access open. */
  watch(requests: Store<RequestView>): void;
}

/** Registers the metrics once; the result makes them those of a kind. */
export function grantMetrics(metrics: Metrics): (kind: string) => GrantMetrics {
  const decisions = metrics.counter({
    name: 'drawbridge_grant_decisions_total',
    help: 'Requests that were granted or denied after admission, by kind and code of the denial.',
    labels: ['kind', 'verdict', 'code'],
  });
  const revocations = metrics.counter({
    name: 'drawbridge_revocations_total',
    help: 'Grants that were closed, by kind and by what ended them.',
    labels: ['kind', 'ending'],
  });
  const lag = metrics.histogram({
    name: 'drawbridge_expiry_lag_seconds',
    help: 'From the deadline of a grant until its access was closed.',
    labels: ['kind'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300],
  });
  const active = metrics.gauge({
    name: 'drawbridge_grants_active',
    help: 'Requests with access open, as this replica sees them.',
    labels: ['kind'],
  });
  return (kind) => ({
    granted: () => decisions.inc({ kind, verdict: 'granted', code: '' }),
    denied: (code) => decisions.inc({ kind, verdict: 'denied', code }),
    revoked(request, ending, nowMs) {
      revocations.inc({ kind, ending });
      const deadlineMs = ending === 'Expired' ? parseTime(request.grant?.expiresAt ?? '') : undefined;
      // Monotonic time may have ended it before the wall clock did.
      if (deadlineMs !== undefined) lag.observe({ kind }, Math.max(0, nowMs - deadlineMs) / 1000);
    },
    watch(requests) {
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

/** One that is being deleted may be held for its stamp's sake long after its access was closed. */
const hasAccess = (request: RequestView | undefined): boolean =>
  request !== undefined && !request.deleting && request.children.length > 0;
