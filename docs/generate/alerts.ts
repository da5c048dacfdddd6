export type Severity = 'critical' | 'warning' | 'info';

/** What the samples of a series are in promtool's notation, one a minute for half an hour. */
interface Samples {
  /** The alert fires at the end. */
  readonly fires: string;
  /** It does not, close to where it would. */
  readonly quiet: string;
}

export interface Alert {
  readonly expression: string;
  /** How long the expression must hold, such as `5m`. Default: one evaluation. */
  readonly for?: string;
  readonly severity: Severity;
  /** Plain text, without a period. */
  readonly summary: string;
  /** What to do: Markdown, with links from docs/reference/. */
  readonly remedy: string;
  /** By series, the cases of the test. */
  readonly cases: Readonly<Record<string, Samples>>;
}

/** A counter of events has no series before its first event, which `increase` then misses. */
const grew = (counter: string, window = '5m'): string =>
  `increase(${counter}[${window}]) > 0 or (${counter} unless ${counter} offset ${window}) > 0`;
/** No target of the job answers scrapes, or there is none. */
const isDown = (job: string): string => `absent(up{job="${job}"} == 1)`;

const always = (value: number): string => `${value}x30`;
const since = (minute: number, value: number, before: number | '_' = 0): string =>
  `${before}x${minute - 1} ${value}x${30 - minute}`;

const review = (code: string): string => `drawbridge_admission_review_duration_seconds_count{code="${code}"}`;
const errors =
  'controller_runtime_reconcile_errors_total{controller=~"podaccessrequest|execaccessrequest|gateway-sessions|gateway-replicas"}';
const queue = 'workqueue_depth{name=~"podaccessrequest|execaccessrequest"}';
/** Prometheus 3 writes the label as 1.0. */
const onTime = 'drawbridge_expiry_lag_seconds_bucket{le=~"1|1.0"}';
const closed = 'drawbridge_expiry_lag_seconds_count';
const expiry = 'drawbridge_certificate_expiry_timestamp_seconds';
const slow = 'drawbridge_admission_review_duration_seconds_bucket';

/** By feature, and `server` for all of them, the alerts by name. Thresholds, not burn rates: such events are rare. */
export const alerts: Readonly<Record<string, Readonly<Record<string, Alert>>>> = {
  access: {
    DrawbridgeGrantPastExpiry: {
      expression: 'max by (kind) (drawbridge_grants_past_expiry) > 0',
      for: '1m',
      severity: 'critical',
      summary: 'A grant has passed its end, and its RoleBinding still admits users',
      remedy:
        'Page a person. Follow [a request does not go away](../tasks/troubleshoot-access.md#a-request-does-not-go-away).',
      cases: { 'drawbridge_grants_past_expiry{kind="PodAccessRequest"}': { fires: since(28, 1), quiet: since(30, 1) } },
    },
    DrawbridgeDown: {
      expression: isDown('drawbridge-metrics'),
      for: '2m',
      severity: 'critical',
      summary: 'No replica of access answers scrapes: access may not end',
      remedy:
        'Read the state and the log of its Pods. If they run, check the scrape and `networkPolicy.metricsFrom`. While they are down, see [webhooks are down](../tasks/troubleshoot-access.md#webhooks-are-down).',
      cases: { 'up{job="drawbridge-metrics"}': { fires: always(0), quiet: since(29, 0, 1) } },
    },
    DrawbridgeNoLeader: {
      expression: 'max(up{job="drawbridge-metrics"}) == 1 unless on() max(drawbridge_policies_in_force)',
      for: '1m',
      severity: 'critical',
      summary: 'Replicas of access run, and none of them leads: access neither opens nor ends',
      remedy:
        'See who holds the Lease `drawbridge-access`, and read `/readyz` and the log of the replicas. A [change of leader](leader-election.md#a-change-of-leader) takes at most about 17 s.',
      cases: {
        'up{job="drawbridge-metrics"}': { fires: always(1), quiet: always(1) },
        drawbridge_policies_in_force: { fires: '1x10', quiet: '0x29 stale' },
      },
    },
    DrawbridgePoliciesNotInForce: {
      expression: 'max(drawbridge_policies_in_force) == 0',
      for: '1m',
      severity: 'critical',
      summary: 'The leader found that the admission policies are not in force: nothing opens',
      remedy:
        'Read `/readyz` of the leader, which the Lease `drawbridge-access` names. See [while they are not in force](admission-policies.md#while-they-are-not-in-force).',
      cases: { drawbridge_policies_in_force: { fires: since(28, 0, 1), quiet: since(30, 0, 1) } },
    },
    DrawbridgeExpiryLate: {
      expression: `increase(${closed}[5m]) - ignoring(le) increase(${onTime}[5m]) > 0 or (${closed} - ignoring(le) ${onTime} unless ${closed} offset 5m) > 0`,
      severity: 'warning',
      summary: 'drawbridge closed access more than 1 s late',
      remedy: "Check the API server's latency and the leader's log.",
      cases: {
        [closed]: { fires: since(28, 3, 2), quiet: since(28, 3, 2) },
        'drawbridge_expiry_lag_seconds_bucket{le="1"}': { fires: always(2), quiet: since(28, 3, 2) },
      },
    },
    DrawbridgeQueueStuck: {
      expression: `max by (name) (${queue}) > 0`,
      for: '5m',
      severity: 'warning',
      summary: 'Requests wait for a worker',
      remedy: "Check the API server's latency.",
      cases: {
        'workqueue_depth{name="execaccessrequest"}': { fires: since(24, 4), quiet: since(27, 4) },
        'workqueue_depth{name="janitor"}': { fires: always(0), quiet: always(9) },
      },
    },
    DrawbridgeDrift: {
      expression: 'max by (kind, drift) (drawbridge_drift_objects) > 0',
      for: '5m',
      severity: 'warning',
      summary: 'Another client creates, changes, or deletes objects of grants',
      remedy: "Find the client in the API server's audit log.",
      cases: {
        'drawbridge_drift_objects{kind="Role",drift="missing"}': { fires: since(24, 1), quiet: since(27, 1) },
      },
    },
    DrawbridgeDriftRepaired: {
      expression: grew('drawbridge_orphans_total'),
      severity: 'warning',
      summary: 'drawbridge deleted objects that belong to no open grant',
      remedy: "Usually, a client removed the finalizer of a request. Find it in the API server's audit log.",
      cases: { 'drawbridge_orphans_total{kind="Pod"}': { fires: since(29, 1, '_'), quiet: since(20, 2, '_') } },
    },
    DrawbridgeEmergencyUsed: {
      expression: grew('drawbridge_emergencies_total'),
      severity: 'info',
      summary: 'Emergency access was opened without approvals',
      remedy: '[Review it](../tasks/emergency-access.md#review-it).',
      cases: {
        'drawbridge_emergencies_total{kind="PodAccessRequest"}': { fires: since(28, 2, 1), quiet: since(20, 2, 1) },
      },
    },
    DrawbridgeReviewOverdue: {
      expression: 'max(drawbridge_reviews_overdue) > 0',
      severity: 'warning',
      summary: 'Emergency access was not reviewed in time',
      remedy: '[Review it](../tasks/emergency-access.md#review-it).',
      cases: { drawbridge_reviews_overdue: { fires: since(30, 1), quiet: '1x28 0x1' } },
    },
    DrawbridgeApprovalsTimingOut: {
      expression: 'sum(increase(drawbridge_grant_decisions_total{code="NotApproved"}[1h])) > 2',
      severity: 'info',
      summary: 'Several requests of the last hour got no approvals in time',
      remedy: 'Tell the [approvers](../tasks/approve-access.md), or let more people approve.',
      cases: {
        'drawbridge_grant_decisions_total{verdict="denied",code="NotApproved"}': {
          fires: since(15, 4),
          quiet: since(15, 2),
        },
      },
    },
  },
  gateway: {
    DrawbridgeGatewayUnavailable: {
      expression: isDown('drawbridge-gateway-metrics'),
      for: '2m',
      severity: 'critical',
      summary: 'No replica of the gateway answers scrapes: users can begin no session through it',
      remedy:
        'Read the state and the log of its Pods. See [if the gateway is down](../tasks/open-sessions-through-the-gateway.md#if-the-gateway-is-down).',
      cases: { 'up{job="drawbridge-gateway-metrics"}': { fires: '1x20', quiet: since(29, 0, 1) } },
    },
    DrawbridgeRecordingLost: {
      expression: 'increase(drawbridge_gateway_recordings_lost_total[5m]) > 0',
      severity: 'warning',
      summary: 'The gateway could not store a recording, or a part of it',
      remedy:
        'See [when a recording is lost](../tasks/record-sessions.md#when-a-recording-is-lost). The journal of the gateway has the causes, with the code `RecordingLost`.',
      cases: { drawbridge_gateway_recordings_lost_total: { fires: since(28, 1), quiet: since(20, 1) } },
    },
  },
  notify: {
    DrawbridgeNotifyDown: {
      expression: isDown('drawbridge-notify-metrics'),
      for: '5m',
      severity: 'warning',
      summary: 'No replica of notify answers scrapes: people may not be told about requests',
      remedy:
        'Read the state and the log of its Pods. If they run, check the scrape. Messages of the last 24 hours are sent once a replica runs.',
      cases: { 'up{job="drawbridge-notify-metrics"}': { fires: since(24, 0, 1), quiet: since(27, 0, 1) } },
    },
    DrawbridgeNotificationsUndelivered: {
      expression: grew('drawbridge_notifications_total{result="undelivered"}'),
      severity: 'warning',
      summary: 'drawbridge gave a message up: the sink did not take it within a day',
      remedy:
        'The log of `drawbridge-notify` names the provider. Read its condition `Ready`, and [what to do](conditions.md#conditions-of-notifications).',
      cases: {
        'drawbridge_notifications_total{type="Slack",result="undelivered"}': {
          fires: since(28, 1),
          quiet: since(20, 1),
        },
        'drawbridge_notifications_total{type="Slack",result="delivered"}': { fires: always(0), quiet: since(28, 1) },
      },
    },
    DrawbridgeNotificationsWaiting: {
      expression: 'max by (type) (drawbridge_notifications_oldest_pending_seconds) > 900',
      for: '5m',
      severity: 'warning',
      summary: 'A message has waited for its sink for 15 minutes',
      remedy:
        'List the providers that are not ready with `kubectl get anp -A`, and see [what to do](conditions.md#conditions-of-notifications). Messages for a suspended provider wait, too. If all are ready, an attempt comes within the hour; a delivered `drawbridge notify test` makes it come at once.',
      cases: {
        'drawbridge_notifications_oldest_pending_seconds{type="Teams"}': {
          fires: since(24, 901),
          quiet: since(27, 901),
        },
      },
    },
  },
  binding: {
    DrawbridgeBindingDown: {
      expression: isDown('drawbridge-binding-metrics'),
      for: '5m',
      severity: 'warning',
      summary: 'No replica of binding answers scrapes: bound objects may not be synced',
      remedy: 'Read the state and the log of its Pods. If they run, check the scrape.',
      cases: { 'up{job="drawbridge-binding-metrics"}': { fires: since(24, 0, 1), quiet: since(27, 0, 1) } },
    },
    DrawbridgeBindingNotReady: {
      expression: 'max by (session) (drawbridge_binding_heartbeat_age_seconds) > 300',
      severity: 'warning',
      summary: 'drawbridge cannot reach a provider, or the provider revoked the credentials',
      remedy: 'See [conditions of binding](conditions.md#conditions-of-binding).',
      cases: {
        'drawbridge_binding_heartbeat_age_seconds{session="a"}': { fires: since(30, 301), quiet: since(30, 300) },
      },
    },
  },
  inventory: {
    DrawbridgeInventoryDown: {
      expression: isDown('drawbridge-inventory-metrics'),
      for: '5m',
      severity: 'warning',
      summary: 'No replica of the inventory answers scrapes: components may not run',
      remedy: 'Read the state and the log of its Pods. If they run, check the scrape.',
      cases: { 'up{job="drawbridge-inventory-metrics"}': { fires: since(24, 0, 1), quiet: since(27, 0, 1) } },
    },
    DrawbridgeSpokeUnreachable: {
      expression: 'max(drawbridge_inventory_remote_watch_unhealthy) > 0',
      for: '10m',
      severity: 'warning',
      summary: 'Watches of a managed cluster do not work',
      remedy:
        'Find the entry by its condition `RemoteWatchHealthy`. See [conditions](conditions.md#conditions-of-the-inventory).',
      cases: { drawbridge_inventory_remote_watch_unhealthy: { fires: since(18, 1), quiet: since(22, 1) } },
    },
    DrawbridgeComponentFailing: {
      expression: 'max by (component) (drawbridge_inventory_breaker_state) > 0',
      for: '10m',
      severity: 'warning',
      summary: 'Calls of a component fail, so that drawbridge calls it rarely',
      remedy: 'Read the log of the component. See [why a call failed](../inventory/run-reasons.md#why-a-call-failed).',
      cases: {
        'drawbridge_inventory_breaker_state{component="dns"}': { fires: '0x10 2x10 1x9', quiet: '2x25 0 2x3' },
      },
    },
    DrawbridgeComponentWaiting: {
      expression: 'max by (component, path) (drawbridge_inventory_notready_entries) > 0',
      severity: 'warning',
      summary:
        'A component of an entry has waited for an input longer than notReadyAlertAfterSeconds of its registration',
      remedy: 'Find the input in the label `path`.',
      cases: {
        'drawbridge_inventory_notready_entries{component="dns",path="/status/a"}': {
          fires: since(30, 1),
          quiet: '1x28 0x1',
        },
      },
    },
    DrawbridgeInventoryConflicts: {
      expression: 'increase(drawbridge_inventory_cas_conflicts_total[5m]) > 0',
      for: '15m',
      severity: 'warning',
      summary: 'Writes of run records keep losing to another writer: probably, two servers act as the leader',
      remedy: 'Check the Lease `drawbridge-inventory`.',
      cases: { drawbridge_inventory_cas_conflicts_total: { fires: '0+1x30', quiet: '0x20 1+1x9' } },
    },
  },
  server: {
    DrawbridgeAuditUnwritable: {
      expression: grew(review('AuditUnavailable')),
      severity: 'critical',
      summary: 'drawbridge cannot write the audit journal, and denies what it would record',
      remedy: 'Follow [the audit disk is full](../tasks/troubleshoot-access.md#the-audit-disk-is-full).',
      cases: { [review('AuditUnavailable')]: { fires: since(28, 1, '_'), quiet: since(20, 1, '_') } },
    },
    DrawbridgeAuditUnsigned: {
      expression: 'drawbridge_audit_unsigned_lines > 0',
      for: '5m',
      severity: 'warning',
      summary: 'drawbridge cannot publish the signed heads of its audit journal',
      remedy: 'Find the cause in the log. See [verify the audit journal](../tasks/verify-the-audit-journal.md).',
      cases: { drawbridge_audit_unsigned_lines: { fires: since(24, 7), quiet: '7x26 0 7x2' } },
    },
    DrawbridgeAdmissionErrors: {
      expression: grew(review('InternalError')),
      severity: 'warning',
      summary: 'A webhook failed to decide: a call to the API server failed, or drawbridge has a bug',
      remedy: 'Find `webhook failed to decide` in the log.',
      cases: { [review('InternalError')]: { fires: since(28, 1, '_'), quiet: since(20, 1, '_') } },
    },
    DrawbridgeAdmissionSlow: {
      expression: `histogram_quantile(0.99, sum by (job, le) (rate(${slow}[5m]))) > 1`,
      for: '5m',
      severity: 'warning',
      summary: 'One of a hundred reviews takes more than 1 s; the API server waits for 3 s',
      remedy: "Check the API server's latency, and the processor time of the Pods.",
      cases: {
        [`${slow}{le="1"}`]: { fires: '0+98x30', quiet: '0+99x30' },
        [`${slow}{le="3"}`]: { fires: '0+100x30', quiet: '0+100x30' },
        [`${slow}{le="+Inf"}`]: { fires: '0+100x30', quiet: '0+100x30' },
      },
    },
    DrawbridgeReconcileErrors: {
      expression: `sum by (controller) (increase(${errors}[5m])) > 0`,
      for: '10m',
      severity: 'warning',
      summary: 'Reconciles keep failing, for example because the API server denies a call',
      remedy:
        'Find `reconcile failed` in the log of the feature. While a controller of the gateway fails, it may refuse [sessions](../concepts/gateway-sessions.md#who-is-connected) with `GatewayFailed`.',
      cases: {
        'controller_runtime_reconcile_errors_total{controller="gateway-sessions"}': {
          fires: '0x14 1+1x15',
          quiet: '0x21 1+1x8',
        },
        'controller_runtime_reconcile_errors_total{controller="of-another-program"}': {
          fires: always(0),
          quiet: '0+1x30',
        },
      },
    },
    DrawbridgeWatchRefused: {
      expression: 'sum by (cluster, resource, code) (increase(drawbridge_watch_refusals_total[5m])) > 0',
      for: '5m',
      severity: 'warning',
      summary: 'An API server does not let drawbridge list or watch a kind',
      remedy:
        'For `code` 403, grant the permission again. For 401, check the credentials. For 429 and 5xx, check the API server. For the `cluster` `provider`, see [conditions](conditions.md#conditions-of-binding).',
      cases: {
        'drawbridge_watch_refusals_total{cluster="own",resource="pods",code="403"}': {
          fires: '0x19 1+1x10',
          quiet: '0x26 1+1x3',
        },
      },
    },
    DrawbridgeStoreStale: {
      expression:
        'max by (job, side, resource) (drawbridge_binding_watch_age_seconds) > 120 or max by (job) (drawbridge_inventory_watch_last_event_age_seconds) > 60',
      severity: 'warning',
      summary: 'A watch is silent, so that drawbridge may act on old objects',
      remedy:
        'Check that the cluster is reachable: the label `side` is `provider`, or `consumer` for this cluster. Without it, the watch is that of entries: check the API server.',
      cases: {
        'drawbridge_binding_watch_age_seconds{side="provider"}': { fires: since(30, 121), quiet: since(30, 120) },
        drawbridge_inventory_watch_last_event_age_seconds: { fires: since(30, 60), quiet: since(30, 60) },
      },
    },
    DrawbridgeCertificateExpiring: {
      expression: `${expiry} - time() < 7 * 86400 and ${expiry} > 0`,
      severity: 'warning',
      summary: 'A serving certificate expires within a week, and was not renewed',
      remedy: 'See [certificates](../tasks/certificates.md#problems).',
      // The test ends half an hour after 1970 began.
      cases: {
        [expiry]: { fires: always(7 * 86400), quiet: always(7 * 86400 + 1800) },
        [`${expiry}{pod="without"}`]: { fires: always(0), quiet: always(0) },
      },
    },
    DrawbridgeClockSkew: {
      expression: 'abs(drawbridge_clock_skew_seconds) > 5',
      for: '1m',
      severity: 'warning',
      summary: "The clock of drawbridge, by which grants end, differs from the API server's",
      remedy: 'Correct the clock.',
      cases: {
        'drawbridge_clock_skew_seconds{pod="a"}': { fires: always(-6), quiet: always(-5) },
        'drawbridge_clock_skew_seconds{pod="b"}': { fires: always(5), quiet: since(30, 6) },
      },
    },
    DrawbridgeUnhandledRejection: {
      expression: 'drawbridge_unhandled_rejections_total > 0',
      severity: 'warning',
      summary: 'drawbridge has a bug',
      remedy: 'Report it.',
      cases: { drawbridge_unhandled_rejections_total: { fires: since(30, 1), quiet: always(0) } },
    },
  },
};

/** The names of the metrics of PromQL expressions; of a histogram, without the suffix. */
export const metricsIn = (...expressions: readonly string[]): Set<string> =>
  new Set(
    expressions
      .flatMap((expression) => expression.match(/\b(?:drawbridge|controller_runtime|workqueue|oz)_\w+/g) ?? [])
      .map((name) => name.replace(/_(?:bucket|count|sum)$/, '')),
  );
