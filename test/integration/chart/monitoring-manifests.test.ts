import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import { alerts } from '../../../docs/generate/alerts.ts';
import type { Helm, Manifest } from '../../../sandbox/chart/helm.ts';
import { itRejects, named, type Refused, sharedHelm } from '../../support/chart-manifests.ts';
import { installPrometheusOperatorCrds } from '../../support/module-crds.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

const features = { access: true, binding: true, inventory: true, gateway: true, notify: true };
const labels = { release: 'kube-prometheus-stack' };
const runbookUrl = 'https://example.org/alerts';
const everything = {
  features,
  binding: { bindable: ['widgets.acme.example'] },
  inventory: { namespaces: ['fleet'] },
  serviceMonitor: { enabled: true, interval: '30s', labels },
  prometheusRule: { enabled: true, runbookUrl, labels },
  dashboards: { enabled: true },
};
const isBoard = ({ kind, metadata }: Manifest): boolean =>
  kind === 'ConfigMap' && metadata.labels?.['grafana_dashboard'] === '1';
const isForMonitoring = (manifest: Manifest): boolean =>
  ['ServiceMonitor', 'PrometheusRule'].includes(manifest.kind) || isBoard(manifest);

describe('the manifests of the chart for monitoring', () => {
  let helm: Helm;
  let all: Manifest[];
  before(async function () {
    this.timeout(120_000);
    helm = await sharedHelm();
    all = await helm.template('gatehouse', everything);
  });

  const groupsOf = (manifests: readonly Manifest[]): { name: string; rules: { alert: string }[] }[] =>
    named(manifests, 'PrometheusRule', 'drawbridge')['spec'].groups;

  it('are off by default', async () => {
    const found = (await helm.template('gatehouse')).filter(isForMonitoring);
    assert.deepEqual(found, []);
  });

  it('are accepted by the schemas of the Prometheus Operator', async function () {
    this.timeout(300_000);
    const plane = await sharedPlane();
    await installPrometheusOperatorCrds(plane);
    const namespace = await testNamespace('monitoring');
    const here = (await helm.template(namespace, everything)).filter(isForMonitoring);
    assert.equal(here.length, 5);
    const { stderr } = await plane.kubectl(['apply', '--validate=strict', '-f', '-'], {
      input: here.map((manifest) => stringify(manifest)).join('---\n'),
    });
    assert.equal(stderr, '');
    await plane.call('DELETE', `/api/v1/namespaces/${namespace}`);
  });

  it('scrape the metrics port of every feature, under the job that the alerts name', () => {
    const { metadata, spec } = named(all, 'ServiceMonitor', 'drawbridge');
    assert.equal(metadata.labels?.['release'], 'kube-prometheus-stack');
    assert.deepEqual(spec.endpoints, [{ port: 'metrics', interval: '30s' }]);
    const has = (wanted: object, found: object = {}): boolean =>
      Object.entries(wanted).every(([key, value]) => (found as Record<string, unknown>)[key] === value);
    const services = all.filter(
      (one) =>
        one.kind === 'Service' &&
        has(spec.selector.matchLabels, one.metadata.labels) &&
        one['spec'].ports.some(({ name }: { name: string }) => name === 'metrics'),
    );
    const jobs = JSON.stringify(alerts).match(/(?<=job=\\")[\w-]+/g) ?? [];
    assert.deepEqual(services.map((service) => service.metadata.name).sort(), [...new Set(jobs)].sort());
    for (const service of services) {
      const pods = all
        .filter(({ kind }) => kind === 'Deployment')
        .map((deployment) => deployment['spec'].template)
        .filter((pod) => has(service['spec'].selector, pod.metadata.labels));
      assert.equal(pods.length, 1, service.metadata.name);
      const ports = pods[0].spec.containers.flatMap((container: { ports?: object[] }) => container.ports ?? []);
      assert.ok(
        ports.some((port: object) => has({ name: 'metrics', containerPort: 8080 }, port)),
        service.metadata.name,
      );
    }
  });

  it('have the alerts of the enabled features, with links to the runbook', async () => {
    const access = await helm.template('gatehouse', { prometheusRule: { enabled: true } });
    assert.deepEqual(
      groupsOf(access).map(({ name }) => name),
      ['drawbridge-access', 'drawbridge-server'],
    );
    assert.deepEqual(
      groupsOf(all).map(({ name, rules }) => [name, rules.map(({ alert }) => alert)]),
      ['access', 'binding', 'inventory', 'gateway', 'notify', 'server'].map((feature) => [
        `drawbridge-${feature}`,
        Object.keys(alerts[feature] ?? {}),
      ]),
    );
    assert.match(JSON.stringify(groupsOf(all)), /"https:\/\/example\.org\/alerts#drawbridgedown"/);
    assert.doesNotMatch(JSON.stringify(groupsOf(all)), /docs\/reference/);
  });

  it('have a board for access, binding, and the inventory, which Grafana finds by a label', () => {
    const boards = all.filter(isBoard);
    assert.equal(boards.length, 3);
    for (const { data } of boards) {
      const [[file, text]] = Object.entries(data) as [[string, string]];
      const { uid, panels } = JSON.parse(text);
      assert.equal(file, `${uid}.json`);
      assert.ok(panels.length > 10);
    }
  });

  const refused: Refused[] = [
    ['an interval that is no duration', { serviceMonitor: { interval: 'often' } }, /interval/],
    ['a runbook with an anchor', { prometheusRule: { runbookUrl: 'https://a.example/b#c' } }, /runbookUrl/],
  ];
  itRejects(refused);
});
