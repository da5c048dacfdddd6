import { alerts } from './alerts.ts';
import { page } from './markdown.ts';

const titles: Readonly<Record<string, string>> = {
  access: 'Access',
  gateway: 'Gateway',
  notify: 'Notify',
  binding: 'Binding',
  inventory: 'Inventory',
  server: 'All features',
};

/** The heading of an alert is the anchor of its `runbook_url`. */
export const alertsPage = (): string =>
  page(
    'Alerts',
    'docs/generate/alerts.ts',
    'The chart value `prometheusRule.enabled` installs those of your features, and [monitoring](../tasks/monitor.md) says how. A duration after `for` is how long the expression must hold. critical: access may be open for too long, or does not open. info: people should know.',
    ...Object.entries(alerts).flatMap(([feature, ofFeature]) => [
      `## ${titles[feature] ?? feature}`,
      ...Object.entries(ofFeature).flatMap(([name, { expression, for: held, severity, summary, remedy }]) => [
        `### ${name}`,
        `${summary} (${severity}${held === undefined ? '' : `, for ${held}`}).`,
        `\`\`\`promql\n${expression}\n\`\`\``,
        remedy,
      ]),
    ]),
  );
