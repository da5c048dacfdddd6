import { grantMetrics } from '../../src/access/lifecycle/grant-metrics.ts';
import { policyMetrics } from '../../src/access/policies/controller.ts';
import { orphansMetric, stateMetrics } from '../../src/access/state-metrics.ts';
import {
  outcomeMetrics,
  overloadMetrics,
  unknownPathMetric,
  writeAuthorizationMetrics,
} from '../../src/admission/metrics.ts';
import { bindingMetrics } from '../../src/binding/metrics.ts';
import { recordingMetrics } from '../../src/gateway/recording/metrics.ts';
import { registerInventoryGauges } from '../../src/inventory/manager/gauges.ts';
import { inventoryMetrics } from '../../src/inventory/manager/metrics.ts';
import { unhealthyWatchesMetric } from '../../src/inventory/remote/hub.ts';
import { countOf, watchOutbox } from '../../src/notify/controllers.ts';
import { loopMetrics, type MetricOptions, type Metrics } from '../../src/observe/metrics.ts';
import {
  certificateExpiryMetric,
  clockSkewMetric,
  unhandledRejectionsMetric,
  unsignedLinesMetric,
  watchRefusalsMetric,
} from '../../src/observe/process-metrics.ts';
import { alerts, metricsIn } from './alerts.ts';
import { code, codes, page, table } from './markdown.ts';

/** Arguments that the registrations below use only when values are collected. */
const unused = {} as never;

const sections: Readonly<Record<string, (metrics: Metrics) => void>> = {
  Server: (metrics) => {
    clockSkewMetric(metrics);
    certificateExpiryMetric(metrics);
    unsignedLinesMetric(metrics);
    unhandledRejectionsMetric(metrics);
    watchRefusalsMetric(metrics);
  },
  Webhooks: (metrics) => {
    outcomeMetrics(metrics);
    overloadMetrics(metrics);
    unknownPathMetric(metrics);
  },
  Access: (metrics) => {
    grantMetrics(metrics);
    orphansMetric(metrics);
    policyMetrics(metrics, unused);
    stateMetrics({ metrics, stores: unused, clock: unused, reviews: unused });
  },
  Binding: bindingMetrics,
  Inventory: (metrics) => {
    inventoryMetrics(metrics);
    registerInventoryGauges(metrics, unused);
    unhealthyWatchesMetric(metrics, () => 0);
    writeAuthorizationMetrics(metrics);
  },
  Gateway: recordingMetrics,
  Notify: (metrics) => {
    countOf(metrics);
    watchOutbox(metrics, unused, unused);
  },
  Controllers: loopMetrics,
};

export const metricsPage = (): string =>
  page(
    'Metrics',
    'the definitions in src/observe and in the features',
    'The metrics port serves these at `/metrics`: those of the features of the process, and the usual `process_` and `nodejs_` metrics. No label contains an identity. `_seconds` and `_bytes` are units.',
    'A metric has at most 1,000 series. A counter or histogram counts further ones in one whose labels are all `other`; a gauge drops them. The server renders metrics at most ten times a second.',
    'Metrics with `oz_` have the names and labels of Oz, and those of controllers have those of controller-runtime, so that existing dashboards work.',
    ...Object.entries(sections).flatMap(([title, register]) => [
      `## ${title}`,
      table(
        ['Metric', 'Type', 'Labels', 'Meaning'],
        recorded(register).map(({ name, type, labels = [], help }) => [
          code(name),
          type,
          codes(labels),
          [help, alertsOn(name)].join(' ').trimEnd(),
        ]),
      ),
    ]),
  );

/** Links to the alerts that use a metric. */
const alertsOn = (metric: string): string =>
  Object.values(alerts)
    .flatMap((ofFeature) => Object.entries(ofFeature))
    .filter(([, { expression }]) => metricsIn(expression).has(metric))
    .map(([name]) => `[${name}](alerts.md#${name.toLowerCase()})`)
    .join(', ');

type Recorded = MetricOptions & { readonly type: 'counter' | 'gauge' | 'histogram' };

/** The metrics that `register` registers, in its order. */
function recorded(register: (metrics: Metrics) => void): Recorded[] {
  const found: Recorded[] = [];
  const record =
    <Metric>(type: Recorded['type'], metric: Metric) =>
    (options: MetricOptions): Metric => {
      found.push({ ...options, type });
      return metric;
    };
  register({
    counter: record('counter', { inc() {} }),
    gauge: record('gauge', { set() {} }),
    collected: record('gauge', undefined),
    histogram: record('histogram', { observe() {} }),
    controller: () => unused,
    contentType: '',
    expose: () => unused,
  });
  return found;
}
