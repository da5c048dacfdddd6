import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ControllerMetrics } from './controller-metrics.ts';

/** Only grows. Pass a value for each label. */
export interface CounterMetric {
  /** `by`: default 1. */
  inc(labels?: Record<string, string>, by?: number): void;
}

/** Pass a value for each label. */
export interface GaugeMetric {
  set(labels: Record<string, string>, value: number): void;
}

/** Pass a value for each label, and the observation in the unit of the name. */
export interface HistogramMetric {
  observe(labels: Record<string, string>, value: number): void;
}

export interface MetricOptions {
  /** Snake case with the unit as suffix: `…_seconds`, `…_bytes`, `…_total` for counters. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

/** At most 1,000 series each. Further ones are counted as `other`; those of gauges are dropped. */
export interface MetricFactory {
  counter(options: MetricOptions): CounterMetric;
  gauge(options: MetricOptions): GaugeMetric;
  /** Computed for each scrape: `collect` sets every series; earlier ones are dropped. */
  collected(options: MetricOptions, collect: (set: GaugeMetric['set']) => void): void;
  histogram(options: MetricOptions & { readonly buckets: readonly number[] }): HistogramMetric;
}

/** Those of controllers are named as controller-runtime's, so that its dashboards work. */
export interface Metrics extends MetricFactory {
  controller(name: string): ControllerMetrics;
  readonly contentType: string;
  expose(): Promise<string>;
}

const RECONCILE_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** Without controller-runtime's buckets below 1 ms: timers in Node resolve to a millisecond. */
const QUEUE_BUCKETS = [0.001, 0.01, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1000];

/** With the default ones of prom-client. Call it once: their observers never end. */
export function createProcessMetrics(): Metrics {
  const register = new Registry();
  // The default of 10 ms wakes the process too often. The lag gauges include this interval.
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: 250 });
  return createMetrics(register);
}

/** Registering a name twice throws. */
export function createMetrics(registry = new Registry()): Metrics {
  const registers = [registry];
  const named = ({ name, help, labels = [] }: MetricOptions) => ({ name, help, labelNames: labels, registers });
  const metrics: MetricFactory = {
    counter: (options) => {
      const counter = new Counter(named(options));
      const series = new Series(options);
      return { inc: (labels = {}, by = 1) => counter.inc(series.of(labels) ?? series.other, by) };
    },
    gauge: (options) => {
      const gauge = new Gauge(named(options));
      const series = new Series(options);
      return {
        set(labels, value) {
          if (series.of(labels)) gauge.set(labels, value);
        },
      };
    },
    collected: (options, collect) => {
      new Gauge({
        ...named(options),
        collect() {
          this.reset();
          // A reset sets a gauge without labels to 0, which alerts would take for a value.
          if (options.labels === undefined || options.labels.length === 0) this.remove();
          const series = new Series(options);
          collect((labels, value) => {
            if (series.of(labels)) this.set(labels, value);
          });
        },
      });
    },
    histogram: ({ buckets, ...options }) => {
      const histogram = new Histogram({ ...named(options), buckets: [...buckets] });
      const series = new Series(options);
      return { observe: (labels, value) => histogram.observe(series.of(labels) ?? series.other, value) };
    },
  };
  const loops = loopMetrics(metrics);
  return {
    ...metrics,
    controller: (name) => controllerMetrics(loops, name),
    contentType: registry.contentType,
    expose: () => registry.metrics(),
  };
}

const MAX_SERIES = 1000;

class Series {
  readonly #labels: readonly string[];
  readonly #known = new Set<string>();
  /** Of the series that counts everything beyond the limit. */
  readonly other: Record<string, string>;

  constructor({ labels = [] }: MetricOptions) {
    this.#labels = labels;
    this.other = Object.fromEntries(labels.map((label) => [label, 'other']));
  }

  /** The labels, if their series exists or fits within the limit. */
  of(labels: Record<string, string>): Record<string, string> | undefined {
    if (this.#labels.length === 0) return labels;
    const key = JSON.stringify(this.#labels.map((label) => labels[label]));
    if (this.#known.has(key)) return labels;
    if (this.#known.size >= MAX_SERIES) return undefined;
    this.#known.add(key);
    return labels;
  }
}

type Loops = ReturnType<typeof loopMetrics>;

export function loopMetrics(metrics: Pick<MetricFactory, 'counter' | 'gauge' | 'histogram'>) {
  const ofController = ['controller'];
  const ofQueue = ['name', 'controller'];
  return {
    reconciles: metrics.counter({
      name: 'controller_runtime_reconcile_total',
      help: 'By result: success, requeue_after, or error.',
      labels: [...ofController, 'result'],
    }),
    errors: metrics.counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Reconciles that failed and are retried.',
      labels: ofController,
    }),
    // Dashboards of controller-runtime query it. Conditions report what a retry cannot fix.
    terminal: metrics.counter({
      name: 'controller_runtime_terminal_reconcile_errors_total',
      help: 'Reconciles that failed and are not retried; always 0.',
      labels: ofController,
    }),
    time: metrics.histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Duration of a reconcile.',
      labels: ofController,
      buckets: RECONCILE_BUCKETS,
    }),
    active: metrics.gauge({
      name: 'controller_runtime_active_workers',
      help: 'Workers that are busy.',
      labels: ofController,
    }),
    depth: metrics.gauge({
      name: 'workqueue_depth',
      help: 'Keys that are due and wait, usually for a worker.',
      labels: ofQueue,
    }),
    adds: metrics.counter({ name: 'workqueue_adds_total', help: 'Keys added to the queue.', labels: ofQueue }),
    retries: metrics.counter({ name: 'workqueue_retries_total', help: 'Keys requeued with backoff.', labels: ofQueue }),
    waits: metrics.histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'How long a due key waited for a worker.',
      labels: ofQueue,
      buckets: QUEUE_BUCKETS,
    }),
  };
}

function controllerMetrics(loops: Loops, controller: string): ControllerMetrics {
  const labels = { controller };
  const queue = { name: controller, controller };
  // With 0: rates and alerts miss the first event of a series that did not exist before.
  for (const result of ['success', 'requeue_after', 'error']) loops.reconciles.inc({ controller, result }, 0);
  for (const counter of [loops.errors, loops.terminal]) counter.inc(labels, 0);
  return {
    depth: (keys) => loops.depth.set(queue, keys),
    added: () => loops.adds.inc(queue),
    waited: (seconds) => loops.waits.observe(queue, seconds),
    retried: () => loops.retries.inc(queue),
    active: (workers) => loops.active.set(labels, workers),
    reconciled: (result, seconds) => {
      loops.reconciles.inc({ controller, result });
      if (result === 'error') loops.errors.inc(labels);
      loops.time.observe(labels, seconds);
    },
  };
}
