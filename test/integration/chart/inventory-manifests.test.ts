import assert from 'node:assert/strict';
import type { Helm, Manifest } from '../../../sandbox/chart/helm.ts';
import { entryRoles, rulesOf as granted } from '../../../src/inventory/accounts/entry-objects.ts';
import { covers } from '../../../src/rbac/rule-cover.ts';
import {
  itRejects,
  named,
  namesOf,
  type Refused,
  rightsIn,
  rolesIn,
  rulesOf,
  sharedHelm,
  shippedIn,
} from '../../support/chart-manifests.ts';

const namespace = 'gatehouse';
const inventory = { namespaces: ['fleet', 'labs'] };
const alone = { features: { access: false, inventory: true }, inventory };
const withAccess = { features: { access: true, inventory: true }, inventory };
const byHand = { mode: 'secret', caBundle: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n' };
const everything = {
  features: { access: true, binding: true, inventory: true },
  binding: { bindable: ['widgets.acme.example'] },
  inventory: { ...inventory, apiUrl: 'https://api.example.org', callbackUrl: 'https://callbacks.example.org:8443' },
  networkPolicy: { componentPorts: [8443] },
  namespaces: ['payments'],
};

/** Labels of Pods, by the name of the workload that creates them. */
const podsIn = (manifests: readonly Manifest[]): [string, Record<string, string>][] =>
  manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map(({ metadata, spec }) => [metadata.name, spec.template.metadata.labels]);

/** Supports the selectors that the chart uses. */
function selects(selector: LabelSelector, labels: Record<string, string>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      assert.equal(operator, 'In');
      return values.includes(labels[key] ?? '');
    })
  );
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string; readonly values: string[] }[];
}

const argsOf = (manifests: readonly Manifest[]): string[] =>
  named(manifests, 'Deployment', 'drawbridge-inventory')['spec'].template.spec.containers[0].args;

describe('the chart with all features', () => {
  let helm: Helm;
  let all: Manifest[];

  before(async function () {
    this.timeout(120_000);
    helm = await sharedHelm();
    all = await helm.template(namespace, everything);
  });

  it('runs each in its own Deployment, with its own ServiceAccount and features', () => {
    const deployments = all.filter(({ kind }) => kind === 'Deployment');
    const started = deployments.map(({ metadata, spec: { template } }) => {
      const { serviceAccountName, containers } = template.spec;
      const [features] = containers[0].args.filter((arg: string) => arg.startsWith('--features='));
      return [metadata.name, serviceAccountName, features];
    });
    assert.deepEqual(started.sort(), [
      ['drawbridge', 'drawbridge', '--features=access'],
      ['drawbridge-binding', 'drawbridge-binding', '--features=binding'],
      ['drawbridge-inventory', 'drawbridge-inventory', '--features=inventory'],
    ]);
    assert.equal(new Set(deployments.map(({ spec }) => spec.template.spec.containers[0].image)).size, 1);
  });

  it('keeps the selector of the first Deployment, because a selector is immutable', () => {
    assert.deepEqual(named(all, 'Deployment', 'drawbridge')['spec'].selector.matchLabels, {
      'app.kubernetes.io/name': 'drawbridge',
      'app.kubernetes.io/component': 'server',
    });
  });

  it('selects the Pods of one feature with each Deployment, Service, NetworkPolicy and PodDisruptionBudget', () => {
    const selectors: [string, string, LabelSelector][] = all.flatMap(({ kind, metadata: { name }, spec }) => {
      if (kind === 'Service') return [[kind, name, { matchLabels: spec.selector }]];
      if (kind === 'NetworkPolicy') return [[kind, name, spec.podSelector]];
      return kind === 'Deployment' || kind === 'PodDisruptionBudget' ? [[kind, name, spec.selector]] : [];
    });
    const found = selectors.map(([kind, name, selector]) => {
      const pods = podsIn(all).filter(([, labels]) => selects(selector, labels));
      return `${kind} ${name}: ${pods.map(([pod]) => pod).sort()}`;
    });
    const features = ['drawbridge', 'drawbridge-binding', 'drawbridge-inventory'];
    assert.deepEqual(
      found.sort(),
      [
        ...features.flatMap((name) =>
          [`Deployment ${name}`, `PodDisruptionBudget ${name}`, `Service ${name}-metrics`].map(
            (it) => `${it}: ${name}`,
          ),
        ),
        'NetworkPolicy drawbridge: drawbridge,drawbridge-revoke-all',
        'NetworkPolicy drawbridge-binding: drawbridge-binding',
        'NetworkPolicy drawbridge-inventory: drawbridge-inventory',
        'Service drawbridge-webhook: drawbridge',
        'Service drawbridge-inventory-webhook: drawbridge-inventory',
        'Service drawbridge-callbacks: drawbridge-inventory',
      ].sort(),
    );
  });

  it('grants the permissions of each feature only to its own ServiceAccount', () => {
    const roles = new Map(
      all
        .filter(({ kind }) => /RoleBinding$/.test(kind))
        .map(({ roleRef, subjects }) => [
          `${roleRef.kind} ${roleRef.name}`,
          subjects.map(({ name }: { name: string }) => name).join(),
        ]),
    );
    assert.deepEqual(Object.fromEntries([...roles].sort()), {
      'ClusterRole drawbridge': 'drawbridge',
      'ClusterRole drawbridge-binding': 'drawbridge-binding',
      'ClusterRole drawbridge-binding-secrets': 'drawbridge-binding',
      'ClusterRole drawbridge-grants': 'drawbridge',
      'ClusterRole drawbridge-inventory': 'drawbridge-inventory',
      'ClusterRole drawbridge-inventory-entries': 'drawbridge-inventory',
      'ClusterRole drawbridge-test': 'drawbridge-test',
      'Role drawbridge': 'drawbridge',
      'Role drawbridge-binding': 'drawbridge-binding',
      'Role drawbridge-inventory': 'drawbridge-inventory',
      'Role drawbridge-test-lease': 'drawbridge-test',
      'Role drawbridge-test-request': 'drawbridge-test',
    });
  });

  it('allows each feature to read only its own keys, and access its record of the policies', () => {
    const readBy = (role: string): string[] =>
      rulesOf(named(all, 'Role', role))
        .filter(({ resources, verbs }) => resources.includes('secrets') && verbs.includes('get'))
        .flatMap(({ resourceNames = ['every Secret'] }) => resourceNames);
    assert.deepEqual(readBy('drawbridge'), ['drawbridge-audit-keys', 'drawbridge-policies']);
    assert.deepEqual(readBy('drawbridge-inventory'), ['drawbridge-inventory-audit-keys']);
  });

  it('allows each to reach only its own peers, at the configured addresses', async () => {
    const networkPolicy = {
      apiServerCIDRs: ['10.0.0.1/32', 'fd00::1/128'],
      providerCIDRs: ['192.0.2.0/24'],
      componentCIDRs: ['198.51.100.0/24'],
      dnsCIDRs: ['10.0.0.10/32'],
      componentPorts: [8443],
    };
    const given = await helm.template(namespace, { ...everything, networkPolicy });
    const words = (rules: PolicyRule[], side: 'to' | 'from'): string[] =>
      rules.map(({ ports, [side]: peers = [] }) => {
        const at = ports.map(({ port }) => port).join('+');
        return `${at} ${peers.map(({ ipBlock }) => ipBlock?.cidr).join('+')}`.trim();
      });
    const policy = (manifests: Manifest[], name: string): Record<string, string[]> => {
      const { ingress, egress } = named(manifests, 'NetworkPolicy', name)['spec'];
      return { ingress: words(ingress, 'from'), egress: words(egress, 'to') };
    };
    const apiServer = '10.0.0.1/32+fd00::1/128';
    const dns = '53+53 10.0.0.10/32';
    assert.deepEqual(policy(given, 'drawbridge'), {
      ingress: [`9443 ${apiServer}`, '8081', '8080'],
      egress: [`443+6443 ${apiServer}`],
    });
    assert.deepEqual(policy(given, 'drawbridge-binding'), {
      ingress: ['8081', '8080'],
      egress: [`443+6443 ${apiServer}`, '443+6443 192.0.2.0/24', dns],
    });
    assert.deepEqual(policy(given, 'drawbridge-inventory'), {
      ingress: [`9443 ${apiServer}`, '9444', '8081', '8080'],
      egress: [`443+6443 ${apiServer}`, '8443 198.51.100.0/24', dns],
    });
  });

  it('sets the resources of each feature, or the common ones', async () => {
    const large = { limits: { memory: '2Gi' } };
    const given = await helm.template(namespace, {
      ...everything,
      features: { ...everything.features, gateway: true },
      gateway: { resources: { limits: { memory: '1Gi' } } },
      inventory: { ...everything.inventory, resources: large },
    });
    const memory = ['drawbridge', 'drawbridge-gateway', 'drawbridge-binding', 'drawbridge-inventory'].map(
      (name) => named(given, 'Deployment', name)['spec'].template.spec.containers[0].resources.limits.memory,
    );
    assert.deepEqual(memory, ['512Mi', '1Gi', '512Mi', '2Gi']);
  });
});

interface PolicyRule {
  readonly ports: readonly { readonly port: number }[];
  readonly from?: readonly { readonly ipBlock?: { readonly cidr: string } }[];
  readonly to?: readonly { readonly ipBlock?: { readonly cidr: string } }[];
}

describe('the chart with inventory', () => {
  let helm: Helm;

  before(async function () {
    this.timeout(120_000);
    helm = await sharedHelm();
  });

  const refused: Refused[] = [
    ['entries nowhere', { inventory: { namespaces: [] } }, /inventory\.namespaces: .*needs the namespaces of entries/],
    ['entries everywhere', { inventory: { namespaces: ['*'] } }, /namespaces\/0.*does not match/],
    ['entries beside its keys', { inventory: { namespaces: [namespace] } }, /is the namespace of the server itself/],
    ['callbacks without TLS', { inventory: { ...inventory, callbackUrl: 'http://x' } }, /callbackUrl.*does not match/],
    ['an API without TLS', { inventory: { ...inventory, apiUrl: 'http://x' } }, /apiUrl.*does not match/],
    ['an unknown value', { inventory: { ...inventory, shards: 3 } }, /additional properties 'shards' not allowed/],
    [
      'the certificate Secret of access as its own',
      { ...withAccess, certificates: byHand },
      /inventory\.certificates\.secretName: .*with certificates\.mode=secret.*drawbridge-inventory-webhook\.gatehouse\.svc/,
    ],
    [
      'the Secret of access by its name',
      {
        ...withAccess,
        certificates: { ...byHand, secretName: 'tls' },
        inventory: { ...inventory, certificates: { secretName: 'tls' } },
      },
      /inventory\.certificates\.secretName: tls is the Secret of access/,
    ],
  ];
  const rows = refused.map(([what, values, message]): Refused => [what, { ...alone, ...values }, message]);
  itRejects(rows, '--namespace', namespace);

  it('works alone: its own kinds, webhooks, and permissions, and nothing of access', async () => {
    const all = await helm.template(namespace, alone);
    assert.deepEqual(namesOf(all), [
      'ClusterRole drawbridge-inventory',
      'ClusterRole drawbridge-inventory-entries',
      'ClusterRole drawbridge-inventory-viewer',
      'ClusterRoleBinding drawbridge-inventory',
      'CustomResourceDefinition clusterinventories.inventory.drawbridge.dev',
      'CustomResourceDefinition componentreconcilers.inventory.drawbridge.dev',
      'CustomResourceDefinition reconcileruns.inventory.drawbridge.dev',
      'Deployment drawbridge-inventory',
      'MutatingWebhookConfiguration drawbridge-clusterinventories',
      'NetworkPolicy drawbridge-inventory',
      'PodDisruptionBudget drawbridge-inventory',
      'Role drawbridge-inventory',
      'RoleBinding drawbridge-inventory',
      'RoleBinding drawbridge-inventory-entries',
      'RoleBinding drawbridge-inventory-entries',
      'Service drawbridge-callbacks',
      'Service drawbridge-inventory-metrics',
      'Service drawbridge-inventory-webhook',
      'ServiceAccount drawbridge-inventory',
      'ValidatingAdmissionPolicy drawbridge-webhooks',
      'ValidatingAdmissionPolicyBinding drawbridge-webhooks',
      'ValidatingWebhookConfiguration drawbridge-clusterinventories',
      'ValidatingWebhookConfiguration drawbridge-componentreconcilers',
    ]);
    assert.doesNotMatch(JSON.stringify(all), /wizardofoz|helm\.sh\/hook"/);
  });

  it('starts the server with the API URL and the callback URL for components', async () => {
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
      '--features=inventory',
      '--certificate-secret=drawbridge-inventory-own-certificate',
      '--callback-url=https://callbacks.example.org:8443',
      '--component-api-url=https://api.example.org',
    ]) {
      assert.ok(all.includes(one), one);
    }
  });

  it('requests the certificate for callbacks too if cert-manager issues it', async () => {
    const values = { ...everything, certificates: { mode: 'cert-manager' } };
    const all = await helm.template(namespace, values);
    const { dnsNames, secretName } = named(all, 'Certificate', 'drawbridge-inventory-webhook')['spec'];
    assert.ok(dnsNames.includes('callbacks.example.org'), dnsNames.join());
    const access = named(all, 'Certificate', 'drawbridge-webhook')['spec'];
    assert.ok(!access.dnsNames.includes('callbacks.example.org'), access.dnsNames.join());
    assert.notEqual(secretName, access.secretName);
  });

  it('has its own Secret for its certificate in each mode; alone, it uses the Secret that the values name', async () => {
    const mounted = async (values: object, name: string): Promise<string[]> => {
      const { volumes = [] } = named(await helm.template(namespace, values), 'Deployment', name)['spec'].template.spec;
      return volumes.flatMap(({ secret }: { secret?: { secretName: string } }) => secret?.secretName ?? []);
    };
    const both = {
      ...withAccess,
      certificates: byHand,
      inventory: { ...inventory, certificates: { secretName: 'callbacks-tls' } },
    };
    assert.deepEqual(await mounted(both, 'drawbridge'), ['drawbridge-webhook-tls']);
    assert.deepEqual(await mounted(both, 'drawbridge-inventory'), ['callbacks-tls']);
    assert.deepEqual(
      await mounted({ ...alone, certificates: { ...byHand, secretName: 'tls' } }, 'drawbridge-inventory'),
      ['tls'],
    );
    const all = await helm.template(namespace, withAccess);
    for (const [role, ...written] of [
      ['drawbridge', 'drawbridge-policies', 'drawbridge-own-certificate'],
      ['drawbridge-inventory', 'drawbridge-inventory-own-certificate'],
    ] as const) {
      const patched = rulesOf(named(all, 'Role', role)).filter(
        ({ resources, verbs }) => resources.includes('secrets') && verbs.includes('patch'),
      );
      assert.deepEqual(
        patched.flatMap(({ resourceNames }) => resourceNames),
        written,
      );
    }
  });

  it('may patch only its own webhook configurations, and access none of these', async () => {
    const all = await helm.template(namespace, withAccess);
    const patched = (role: string): string[] =>
      rulesOf(named(all, 'ClusterRole', role))
        .filter(
          ({ apiGroups, verbs }) => apiGroups.join() === 'admissionregistration.k8s.io' && verbs.includes('patch'),
        )
        .flatMap(({ resourceNames = [] }) => resourceNames)
        .sort();
    const registered = (folder: string): string[] =>
      [...new Set(shippedIn(folder).map(({ metadata }) => metadata.name))].sort();
    assert.deepEqual(patched('drawbridge-inventory'), registered('webhooks/inventory'));
    assert.deepEqual(patched('drawbridge'), registered('webhooks'));
  });

  it('has all permissions that it grants to components', async () => {
    const held = rulesOf(named(await helm.template(namespace, alone), 'ClusterRole', 'drawbridge-inventory-entries'));
    const ref = { namespace: 'fleet', name: 'rt-1', uid: 'a' };
    for (const role of entryRoles) assert.ok(covers(held, granted(ref, role, 'supplied')), role);
  });

  it('has permissions on Secrets, accounts, Roles, and tokens only in the namespaces of entries, and on a few by name in its own', async () => {
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

  it('lets users who may view a namespace read entries, and gives no role write access to them', async () => {
    for (const aggregate of [true, false]) {
      const all = await helm.template(namespace, { ...alone, rbac: { aggregate } });
      const viewer = named(all, 'ClusterRole', 'drawbridge-inventory-viewer');
      assert.equal('rbac.authorization.k8s.io/aggregate-to-view' in (viewer.metadata.labels ?? {}), aggregate);
      for (const { verbs } of rulesOf(viewer)) assert.deepEqual(verbs, ['get', 'list', 'watch']);
      const aggregated = rolesIn(all).filter((role) => JSON.stringify(role.metadata.labels).includes('/aggregate-to-'));
      assert.ok(aggregated.every((role) => role === viewer));
    }
  });
});
