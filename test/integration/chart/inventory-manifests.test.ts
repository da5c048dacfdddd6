import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { chart, Helm, type Manifest } from '../../../sandbox/chart/helm.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { covers } from '../../../src/grants/rule-cover.ts';
import { rulesOf as granted, grants } from '../../../src/inventory/accounts/entry-objects.ts';
import { named, rightsIn, rolesIn, rulesOf, serverRightsIn, tooMuchIn } from '../../support/chart-manifests.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

const namespace = 'gatehouse';
const inventory = { namespaces: ['fleet', 'labs'] };
const alone = { features: { access: false, inventory: true }, inventory };
const withAccess = { features: { access: true, inventory: true }, inventory };
const everything = {
  features: { access: true, binding: true, inventory: true },
  binding: { bindable: ['widgets.acme.example'] },
  inventory: { ...inventory, apiUrl: 'https://api.example.org', callbackUrl: 'https://callbacks.example.org:8443' },
  networkPolicy: { componentPorts: [8443] },
  namespaces: ['payments'],
};

const namesOf = (manifests: readonly Manifest[]): string[] =>
  manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
const argsOf = (manifests: readonly Manifest[]): string[] =>
  named(manifests, 'Deployment', 'drawbridge')['spec'].template.spec.containers[0].args;
const shippedIn = (folder: string): Manifest[] =>
  readdirSync(join(chart, '../..', folder))
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => parseAllDocuments(readFileSync(join(chart, '../..', folder, file), 'utf8')))
    .map((document) => document.toJS() as Manifest);

describe('the chart with inventory', () => {
  let plane: Plane;
  let helm: Helm;

  before(async function () {
    this.timeout(120_000);
    plane = await sharedPlane();
    helm = new Helm({ program: plane.binaries.helm, home: plane.directory, kubeconfig: plane.adminKubeconfig });
  });

  it('is taken by helm lint', async () => {
    for (const values of [alone, withAccess, everything]) {
      const input = JSON.stringify(values);
      await helm.run(['lint', '--strict', '--namespace', namespace, chart, '--values', '-'], { input });
    }
  });

  const refused: [string, object, RegExp][] = [
    ['entries nowhere', { inventory: { namespaces: [] } }, /inventory\.namespaces: .*has to name where entries are/],
    ['entries everywhere', { inventory: { namespaces: ['*'] } }, /namespaces\/0.*does not match/],
    ['entries beside its keys', { inventory: { namespaces: [namespace] } }, /is the namespace of the server itself/],
    ['callbacks without TLS', { inventory: { ...inventory, callbackUrl: 'http://x' } }, /callbackUrl.*does not match/],
    ['an API without TLS', { inventory: { ...inventory, apiUrl: 'http://x' } }, /apiUrl.*does not match/],
    ['what it does not know', { inventory: { ...inventory, shards: 3 } }, /additional properties 'shards' not allowed/],
    ['a Secret without its authority', { certificates: { mode: 'secret' } }, /certificates\.caBundle: .*PEM/],
  ];
  for (const [what, values, message] of refused) {
    it(`refuses ${what}`, async () => {
      const command = ['template', 'drawbridge', chart, '--namespace', namespace, '--values', '-'];
      const input = JSON.stringify({ ...alone, ...values });
      const { code, stderr } = await helm.run(command, { input, reject: false });
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    });
  }

  it('works alone: its own kinds, webhooks and rights, and nothing of access', async () => {
    const all = await helm.template(namespace, alone);
    assert.deepEqual(namesOf(all), [
      'ClusterRole drawbridge-inventory',
      'ClusterRole drawbridge-inventory-entries',
      'ClusterRole drawbridge-inventory-viewer',
      'ClusterRoleBinding drawbridge-inventory',
      'CustomResourceDefinition clusterinventories.inventory.drawbridge.dev',
      'CustomResourceDefinition componentreconcilers.inventory.drawbridge.dev',
      'CustomResourceDefinition reconcileruns.inventory.drawbridge.dev',
      'Deployment drawbridge',
      'MutatingWebhookConfiguration drawbridge-clusterinventories',
      'NetworkPolicy drawbridge',
      'PodDisruptionBudget drawbridge',
      'Role drawbridge-inventory',
      'RoleBinding drawbridge-inventory',
      'RoleBinding drawbridge-inventory-entries',
      'RoleBinding drawbridge-inventory-entries',
      'Service drawbridge-callbacks',
      'Service drawbridge-metrics',
      'Service drawbridge-webhook',
      'ServiceAccount drawbridge',
      'ValidatingWebhookConfiguration drawbridge-clusterinventories',
      'ValidatingWebhookConfiguration drawbridge-componentreconcilers',
    ]);
    assert.doesNotMatch(JSON.stringify(all), /wizardofoz|helm\.sh\/hook"/);
  });

  it('starts the server with where components find the API and report to', async () => {
    const args = argsOf(await helm.template(namespace, alone));
    for (const one of [
      '--features=inventory',
      `--lease-namespace=${namespace}`,
      '--certificates=own',
      `--callback-url=https://drawbridge-callbacks.${namespace}.svc`,
      '--component-api-url=https://kubernetes.default.svc',
    ]) {
      assert.ok(args.includes(one), one);
    }
    const all = argsOf(await helm.template(namespace, everything));
    for (const one of [
      '--features=access,binding,inventory',
      '--binding-lease-namespace=kube-bind',
      '--callback-url=https://callbacks.example.org:8443',
      '--component-api-url=https://api.example.org',
    ]) {
      assert.ok(all.includes(one), one);
    }
  });

  it('has the certificate made for callbacks too, when cert-manager makes it', async () => {
    const values = { ...everything, certificates: { mode: 'cert-manager' } };
    const { dnsNames } = named(await helm.template(namespace, values), 'Certificate', 'drawbridge-webhook')['spec'];
    assert.ok(dnsNames.includes('callbacks.example.org'), dnsNames.join());
  });

  it('shares one process with access, which stays as it is', async () => {
    const [both, access, lone] = [
      await helm.template(namespace, withAccess),
      await helm.template(namespace),
      await helm.template(namespace, alone),
    ];
    assert.deepEqual(new Set(namesOf(both)), new Set([...namesOf(access), ...namesOf(lone)]));
    assert.deepEqual(new Set(serverRightsIn(both)), new Set([...serverRightsIn(access), ...serverRightsIn(lone)]));
    for (const manifest of access) {
      const { kind, metadata } = manifest;
      if (kind === 'Deployment' || kind === 'NetworkPolicy') continue;
      assert.ok(
        both.some((one) => isDeepStrictEqual(one, manifest)),
        `${kind} ${metadata.name}`,
      );
    }
  });

  it('gives nobody a wildcard or a right that lets rights grow', async () => {
    assert.deepEqual(tooMuchIn(await helm.template(namespace, everything)), []);
  });

  it('holds what components are given, so that the API server lets it give that, and nothing more', async () => {
    const held = rulesOf(named(await helm.template(namespace, alone), 'ClusterRole', 'drawbridge-inventory-entries'));
    const ref = { namespace: 'fleet', name: 'rt-1', uid: 'a' };
    for (const grant of grants) assert.ok(covers(held, granted(ref, grant, 'supplied')), grant);
  });

  it('has rights on Secrets, accounts, Roles and tokens where entries are alone, and on a few by name at home', async () => {
    const all = await helm.template(namespace, alone);
    const bindings = all.filter(({ roleRef }) => roleRef?.name === 'drawbridge-inventory-entries');
    assert.deepEqual(
      bindings.map(({ kind, metadata }) => `${kind} ${metadata.namespace}`),
      ['RoleBinding fleet', 'RoleBinding labs'],
    );
    const everywhere = rightsIn(rulesOf(named(all, 'ClusterRole', 'drawbridge-inventory')));
    assert.deepEqual(
      everywhere.filter((right) => /secrets|serviceaccounts|rbac|pods/.test(right)),
      [],
    );
    for (const { resources, resourceNames, verbs } of rulesOf(named(all, 'Role', 'drawbridge-inventory'))) {
      if (verbs.join() === 'create' && resources.join() !== 'serviceaccounts/token') continue;
      assert.ok(resourceNames?.length, JSON.stringify({ resources, verbs }));
    }
  });

  it('lets whoever may view a namespace see entries, and nobody write them', async () => {
    for (const aggregate of [true, false]) {
      const all = await helm.template(namespace, { ...alone, rbac: { aggregate } });
      const viewer = named(all, 'ClusterRole', 'drawbridge-inventory-viewer');
      assert.equal('rbac.authorization.k8s.io/aggregate-to-view' in (viewer.metadata.labels ?? {}), aggregate);
      for (const { verbs } of rulesOf(viewer)) assert.deepEqual(verbs, ['get', 'list', 'watch']);
      const aggregated = rolesIn(all).filter((role) => JSON.stringify(role.metadata.labels).includes('/aggregate-to-'));
      assert.ok(aggregated.every((role) => role === viewer));
    }
  });

  it('registers exactly the webhooks of webhooks/inventory, in its own namespace, for entries wherever they are', async () => {
    const rendered = (await helm.template(namespace, { ...alone, namespaces: ['payments'] })).filter(({ kind }) =>
      kind.endsWith('WebhookConfiguration'),
    );
    const shipped = shippedIn('webhooks/inventory');
    assert.equal(rendered.length, shipped.length);
    for (const { kind, metadata, webhooks } of shipped) {
      const here = JSON.parse(JSON.stringify(webhooks).replaceAll('drawbridge-system', namespace));
      assert.deepEqual(named(rendered, kind, metadata.name)['webhooks'], here);
    }
  });

  it('leaves its CRDs when it is uninstalled, because the state of clusters goes with them', async () => {
    const rendered = (await helm.template(namespace, alone)).filter(({ kind }) => kind === 'CustomResourceDefinition');
    const shipped = shippedIn('charts/drawbridge/files/inventory-crds');
    assert.equal(rendered.length, shipped.length);
    for (const { kind, metadata, spec } of shipped) {
      const crd = named(rendered, kind, metadata.name);
      assert.deepEqual(crd['spec'], spec);
      assert.equal(crd.metadata.annotations?.['helm.sh/resource-policy'], 'keep');
    }
  });

  it('lets the Pods be reached by components, and reach them', async () => {
    const { spec } = named(
      await helm.template(namespace, { ...alone, networkPolicy: { componentPorts: [8443] } }),
      'NetworkPolicy',
      'drawbridge',
    );
    const ports = (rules: { ports: { port: number }[] }[]): number[] =>
      rules.flatMap((rule) => rule.ports.map(({ port }) => port));
    assert.deepEqual(
      [ports(spec.ingress), ports(spec.egress)],
      [
        [9443, 9444, 8081, 8080],
        [443, 6443, 8443, 53, 53],
      ],
    );
  });

  it('is accepted by the API server as it is', async function () {
    this.timeout(60_000);
    const own = await testNamespace('chart');
    const placed = await helm.template(own, { ...alone, crds: { enabled: false } });
    const here = placed.map((manifest) =>
      manifest.metadata.namespace ? { ...manifest, metadata: { ...manifest.metadata, namespace: own } } : manifest,
    );
    const { stderr } = await plane.kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], {
      input: here.map((manifest) => stringify(manifest)).join('---\n'),
    });
    assert.doesNotMatch(stderr.replaceAll(/.*last-applied-configuration.*\n/g, ''), /Warning/);
    await plane.call('DELETE', `/api/v1/namespaces/${own}`);
  });
});
