import type { CounterMetric, GaugeMetric, MetricFactory } from './metrics.ts';

export const clockSkewMetric = (metrics: Pick<MetricFactory, 'gauge'>): GaugeMetric =>
  metrics.gauge({
    name: 'drawbridge_clock_skew_seconds',
    help: 'The clock of the process, by which grants end, minus that of the API server at its last answer; whole seconds.',
  });

export const unsignedLinesMetric = (metrics: Pick<MetricFactory, 'gauge'>): GaugeMetric =>
  metrics.gauge({
    name: 'drawbridge_audit_unsigned_lines',
    help: 'Audit lines that no signed head in the cluster covers yet.',
  });

export const certificateExpiryMetric = (metrics: Pick<MetricFactory, 'gauge'>): GaugeMetric =>
  metrics.gauge({
    name: 'drawbridge_certificate_expiry_timestamp_seconds',
    help: 'When the serving certificate expires, seconds since 1970.',
  });

export const watchRefusalsMetric = (metrics: Pick<MetricFactory, 'counter'>): CounterMetric =>
  metrics.counter({
    name: 'drawbridge_watch_refusals_total',
    help: 'Lists and watches that an API server answered with 401, 403, 429, or a 5xx. `cluster`: `own` or `provider`.',
    labels: ['cluster', 'resource', 'code'],
  });

export const unhandledRejectionsMetric = (metrics: Pick<MetricFactory, 'counter'>): CounterMetric =>
  metrics.counter({
    name: 'drawbridge_unhandled_rejections_total',
    help: 'Promises that failed without a handler: bugs, which please report.',
  });
