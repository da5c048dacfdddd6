import { accesses } from '../api/access/kinds.ts';
import type { Resource } from '../api/object.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Outcome } from './ports.ts';
import { routes } from './routes.ts';

const requestResources: ReadonlySet<Resource> = new Set(accesses.map(({ request }) => request.resource));

/** By name of the validating webhook. */
const requestKinds = new Map(
  routes
    .filter(({ type, resource }) => type === 'validating' && requestResources.has(resource))
    .map(({ name, resource }) => [name, resource.kind]),
);

/** The function records one answered review. */
export function outcomeMetrics(metrics: Metrics): (outcome: Outcome) => void {
  const reviews = metrics.histogram({
    name: 'drawbridge_admission_review_duration_seconds',
    help: 'Time to decide one admission review and to write its audit line.',
    labels: ['webhook', 'operation', 'allowed', 'code'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3],
  });
  // The names of Oz, for its dashboards. The user label is always redacted.
  const created = metrics.counter({
    name: 'oz_access_request_created_total',
    help: 'Requests that the webhooks admitted. The user is redacted.',
    labels: ['kind', 'namespace', 'template', 'user'],
  });
  const connects = metrics.counter({
    name: 'oz_pod_exec_total',
    help: 'Admitted calls that enter a pod. The user is redacted.',
    labels: ['namespace', 'subresource', 'user', 'interactive'],
  });
  return ({ webhook, operation, allowed, code, seconds, namespace, template, dryRun, connect }) => {
    reviews.observe({ webhook, operation, allowed: String(allowed), code }, seconds);
    if (!allowed || dryRun) return;
    const kind = requestKinds.get(webhook);
    if (kind !== undefined && operation === 'CREATE') created.inc({ kind, namespace, template, user: redactedUser });
    if (connect)
      connects.inc({
        namespace,
        subresource: connect.subresource,
        user: redactedUser,
        interactive: String(connect.interactive),
      });
  };
}

/** Oz's default value of the user label. */
const redactedUser = 'redacted';

/** By the exhausted resource. */
export function overloadMetrics(metrics: Metrics): (wanted: 'connection' | 'bytes' | 'turn') => void {
  const rejected = metrics.counter({
    name: 'drawbridge_admission_overload_total',
    help: 'Connections closed before TLS (connection) and calls answered with 503 (bytes, turn), because the port of webhooks or gateway was at its limit.',
    labels: ['wanted'],
  });
  return (wanted) => rejected.inc({ wanted });
}

export function unknownPathMetric(metrics: Metrics): () => void {
  const calls = metrics.counter({
    name: 'drawbridge_admission_unknown_paths_total',
    help: 'Calls of the webhook port answered with 404: no webhook has the path.',
  });
  return () => calls.inc();
}

/** By the code of the denial. */
export function writeAuthorizationMetrics(metrics: Metrics): (code: string) => void {
  const denied = metrics.counter({
    // Dashboards and alerts use this name, so it stays.
    name: 'drawbridge_inventory_fence_rejections_total',
    help: 'Writes of components into entries that the webhook denied. An occasional NoSuchRun is a late run; ForeignPath is a faulty component.',
    labels: ['cause'],
  });
  return (cause) => denied.inc({ cause });
}
