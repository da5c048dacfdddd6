/** What Grafana calls the unit of a panel. */
type Unit = 'short' | 's' | 'bytes' | 'ops' | 'percentunit';

/** A panel: its title, its unit, and its queries by legend. */
type Panel = readonly [title: string, unit: Unit, queries: Readonly<Record<string, string>>];

const quantile = (q: number, histogram: string, by: string): string =>
  `histogram_quantile(${q}, sum by (le, ${by}) (rate(${histogram}_bucket[5m])))`;
const rate = (counter: string, by: string): string => `sum by (${by}) (rate(${counter}[5m]))`;
const max = (gauge: string, by: string): string => `max by (${by}) (${gauge})`;
/** A gauge of the leader alone, or that all replicas have alike. */
const highest = (gauge: string): string => `max(${gauge})`;

/** Panels about the process, for the jobs of a board. */
const processPanels = (jobs: string): readonly Panel[] => [
  ['Replicas that answer scrapes', 'short', { '{{job}}': `sum by (job) (up{job=~"${jobs}"})` }],
  [
    'Failed reconciles',
    'ops',
    { '{{controller}}': rate(`controller_runtime_reconcile_errors_total{job=~"${jobs}"}`, 'controller') },
  ],
  ['Keys that wait', 'short', { '{{name}}': max(`workqueue_depth{job=~"${jobs}"}`, 'name') }],
  [
    'Refused watches',
    'ops',
    { '{{resource}} {{code}}': rate(`drawbridge_watch_refusals_total{job=~"${jobs}"}`, 'resource, code') },
  ],
  ['Memory', 'bytes', { '{{instance}}': `process_resident_memory_bytes{job=~"${jobs}"}` }],
  ['Processor', 'percentunit', { '{{instance}}': `rate(process_cpu_seconds_total{job=~"${jobs}"}[5m])` }],
];

const panels: Readonly<Record<string, readonly Panel[]>> = {
  access: [
    ['Open grants', 'short', { '{{kind}}': max('drawbridge_grants_active', 'kind') }],
    ['Past their end', 'short', { '{{kind}}': max('drawbridge_grants_past_expiry', 'kind') }],
    ['Policies in force', 'short', { '1 is yes': highest('drawbridge_policies_in_force') }],
    ['Overdue reviews', 'short', { reviews: highest('drawbridge_reviews_overdue') }],
    ['Decisions', 'ops', { '{{verdict}} {{code}}': rate('drawbridge_grant_decisions_total', 'verdict, code') }],
    ['Ends', 'ops', { '{{ending}}': rate('drawbridge_revocations_total', 'ending') }],
    [
      'From the end to the revocation',
      's',
      { 'p99 {{kind}}': quantile(0.99, 'drawbridge_expiry_lag_seconds', 'kind') },
    ],
    [
      'Requests',
      'short',
      { '{{template}}': 'sum by (template) (max by (kind, namespace, template, ready) (oz_access_requests))' },
    ],
    ['Drift', 'short', { '{{kind}} {{drift}}': max('drawbridge_drift_objects', 'kind, drift') }],
    ['Connections to Pods', 'ops', { '{{subresource}}': rate('oz_pod_exec_total', 'subresource') }],
    [
      'Duration of reviews',
      's',
      {
        'p50 {{webhook}}': quantile(0.5, 'drawbridge_admission_review_duration_seconds', 'webhook'),
        'p99 {{webhook}}': quantile(0.99, 'drawbridge_admission_review_duration_seconds', 'webhook'),
      },
    ],
    [
      'Denied reviews',
      'ops',
      { '{{code}}': rate('drawbridge_admission_review_duration_seconds_count{allowed="false"}', 'code') },
    ],
    ['Emergencies of a day', 'short', { '{{kind}}': 'sum by (kind) (increase(drawbridge_emergencies_total[1d]))' }],
    [
      'Lost recordings of a day',
      'short',
      { recordings: 'sum(increase(drawbridge_gateway_recordings_lost_total[1d]))' },
    ],
    ['Unsigned audit lines', 'short', { '{{instance}}': 'drawbridge_audit_unsigned_lines' }],
    ['Clock skew', 's', { '{{instance}}': 'drawbridge_clock_skew_seconds' }],
    [
      'Time until certificates expire',
      's',
      { '{{job}}': 'min by (job) (drawbridge_certificate_expiry_timestamp_seconds) - time()' },
    ],
    ...processPanels('drawbridge-metrics|drawbridge-gateway-metrics'),
  ],
  binding: [
    [
      'Objects',
      'short',
      { '{{binding}} {{resource}} {{side}}': max('drawbridge_binding_objects', 'binding, resource, side') },
    ],
    ['Last heartbeat', 's', { '{{session}}': max('drawbridge_binding_heartbeat_age_seconds', 'session') }],
    [
      'Last sign of a watch',
      's',
      { '{{side}} {{resource}}': max('drawbridge_binding_watch_age_seconds', 'side, resource') },
    ],
    ['To the provider', 's', { 'p99 {{resource}}': quantile(0.99, 'drawbridge_binding_sync_up_seconds', 'resource') }],
    [
      'From the provider',
      's',
      { 'p99 {{resource}}': quantile(0.99, 'drawbridge_binding_sync_down_seconds', 'resource') },
    ],
    ['Conflicts', 'ops', { '{{resource}} {{side}}': rate('drawbridge_binding_conflicts_total', 'resource, side') }],
    ['Repaired copies', 'ops', { '{{resource}}': rate('drawbridge_binding_repairs_total', 'resource') }],
    ...processPanels('drawbridge-binding-metrics'),
  ],
  inventory: [
    ['Runs', 'ops', { '{{component}} {{outcome}}': rate('drawbridge_inventory_runs_total', 'component, outcome') }],
    [
      'Triggers',
      'ops',
      { '{{component}} {{reason}}': rate('drawbridge_inventory_triggers_total', 'component, reason') },
    ],
    [
      'From a change to the call',
      's',
      { 'p99 {{lane}}': quantile(0.99, 'drawbridge_inventory_trigger_latency_seconds', 'lane') },
    ],
    [
      'Duration of runs',
      's',
      { 'p99 {{component}}': quantile(0.99, 'drawbridge_inventory_run_duration_seconds', 'component') },
    ],
    ['Due runs', 'short', { '{{lane}}': max('drawbridge_inventory_queue_depth', 'lane') }],
    ['Longest wait of a due run', 's', { wait: highest('drawbridge_inventory_oldest_queued_seconds') }],
    [
      'Entries that wait for an input',
      'short',
      { '{{component}} {{path}}': max('drawbridge_inventory_notready_entries', 'component, path') },
    ],
    ['Breakers (2 is open)', 'short', { '{{component}}': max('drawbridge_inventory_breaker_state', 'component') }],
    ['Attempts', 'short', { '{{component}}': max('drawbridge_inventory_attempts', 'component') }],
    [
      'Rejected reports',
      'ops',
      { '{{component}} {{code}}': rate('drawbridge_inventory_reports_rejected_total', 'component, code') },
    ],
    [
      'Denied writes of components',
      'ops',
      { '{{cause}}': rate('drawbridge_inventory_fence_rejections_total', 'cause') },
    ],
    ['Entries with broken watches', 'short', { entries: highest('drawbridge_inventory_remote_watch_unhealthy') }],
    ['Last sign of the watch of entries', 's', { watch: highest('drawbridge_inventory_watch_last_event_age_seconds') }],
    ['Full comparisons', 'ops', { '{{cause}}': rate('drawbridge_inventory_watch_relists_total', 'cause') }],
    ['Lost writes of run records', 'ops', { writes: 'sum(rate(drawbridge_inventory_cas_conflicts_total[5m]))' }],
    ['Largest entry', 'bytes', { entry: highest('drawbridge_inventory_entry_bytes') }],
    ...processPanels('drawbridge-inventory-metrics'),
  ],
};

/** Three panels a row. */
const columns = 3;
const width = 24 / columns;
const height = 7;

/** By feature: dashboards as Grafana imports them, for any Prometheus that the viewer chooses. */
export const boards: Readonly<Record<string, object>> = Object.fromEntries(
  Object.entries(panels).map(([name, ofBoard]) => [name, board(name, ofBoard)]),
);

/** Of all panels, by board. @testing */
export const boardQueries: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(panels).map(([name, ofBoard]) => [name, ofBoard.flatMap(([, , queries]) => Object.values(queries))]),
);

function board(name: string, ofBoard: readonly Panel[]): object {
  return {
    uid: `drawbridge-${name}`,
    title: `drawbridge / ${name}`,
    tags: ['drawbridge'],
    schemaVersion: 39,
    editable: false,
    refresh: '1m',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: [{ name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' }] },
    panels: ofBoard.map(([title, unit, queries], index) => ({
      id: index + 1,
      title,
      type: 'timeseries',
      gridPos: { x: (index % columns) * width, y: Math.floor(index / columns) * height, w: width, h: height },
      datasource: { type: 'prometheus', uid: '$datasource' },
      fieldConfig: { defaults: { unit, min: unit === 's' ? undefined : 0 }, overrides: [] },
      targets: Object.entries(queries).map(([legendFormat, expr], target) => ({
        refId: String.fromCharCode(65 + target),
        expr,
        legendFormat,
      })),
    })),
  };
}
