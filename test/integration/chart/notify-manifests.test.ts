import assert from 'node:assert/strict';
import type { Helm, Manifest } from '../../../sandbox/chart/helm.ts';
import {
  itRejects,
  named,
  type Refused,
  rightsIn,
  rulesOf,
  sharedHelm,
  shippedIn,
} from '../../support/chart-manifests.ts';

const namespace = 'gatehouse';
const on = { features: { notify: true } };
const everything = {
  ...on,
  notify: {
    secretNamespaces: ['payments', 'orders'],
    allowedCIDRs: ['10.20.0.0/16', 'fd00:20::/32'],
    addresses: { alice: 'alice@example.org' },
    resources: { requests: { cpu: '1m', memory: '1Mi' }, limits: { memory: '99Mi' } },
  },
};

describe('the chart with notify', () => {
  let helm: Helm;
  let all: Manifest[];

  before(async function () {
    this.timeout(120_000);
    helm = await sharedHelm();
    all = await helm.template(namespace, everything);
  });

  const pod = (manifests: readonly Manifest[]): Manifest['spec'] =>
    named(manifests, 'Deployment', 'drawbridge-notify')['spec'].template;

  it('has none of it by default', async () => {
    const names = (await helm.template(namespace)).map(({ metadata }) => metadata.name);
    assert.deepEqual(
      names.filter((name) => /notif/.test(name)),
      [],
    );
  });

  it('installs its CRDs, and leaves them when it is uninstalled', () => {
    const shipped = shippedIn('charts/drawbridge/files/notify-crds');
    assert.equal(shipped.length, 2);
    for (const { kind, metadata, spec } of shipped) {
      const crd = named(all, kind, metadata.name);
      assert.deepEqual(crd['spec'], spec);
      assert.equal(crd.metadata.annotations?.['helm.sh/resource-policy'], 'keep');
    }
  });

  it('runs it under its own ServiceAccount, without a port for callers', () => {
    const { containers, serviceAccountName, volumes } = pod(all).spec;
    assert.equal(serviceAccountName, 'drawbridge-notify');
    assert.deepEqual(containers[0].args, [
      'serve',
      '--features=notify',
      `--lease-namespace=${namespace}`,
      '--notify-allow-cidrs=10.20.0.0/16,fd00:20::/32',
      '--notify-addresses=/etc/drawbridge/notify/addresses.json',
      '--health-port=8081',
      '--metrics-port=8080',
      '--log-level=info',
      '--log-format=json',
    ]);
    assert.deepEqual(
      containers[0].ports.map(({ name }: { name: string }) => name),
      ['health', 'metrics'],
    );
    assert.equal(containers[0].lifecycle, undefined);
    assert.equal(containers[0].resources.limits.memory, '99Mi');
    assert.deepEqual(volumes, [{ name: 'addresses', configMap: { name: 'drawbridge-notify-addresses' } }]);
    named(all, 'PodDisruptionBudget', 'drawbridge-notify');
    const services = all.filter(({ kind, metadata }) => kind === 'Service' && /notify/.test(metadata.name));
    assert.deepEqual(
      services.map(({ metadata }) => metadata.name),
      ['drawbridge-notify-metrics'],
    );
  });

  it('starts new Pods when mail addresses change, which it reads at start', async () => {
    const { data } = named(all, 'ConfigMap', 'drawbridge-notify-addresses');
    assert.deepEqual(JSON.parse(data['addresses.json']), { alice: 'alice@example.org' });
    const changed = await helm.template(namespace, { ...on, notify: { addresses: { alice: 'a@example.org' } } });
    const [before, after] = [all, changed].map((manifests) => pod(manifests).metadata.annotations);
    assert.notDeepEqual(before, after);
    assert.equal(pod(await helm.template(namespace, on)).metadata.annotations, undefined);
  });

  it('gives it these permissions, and no others', () => {
    const held = (kind: string): string[] =>
      rulesOf(named(all, kind, 'drawbridge-notify')).flatMap((rule) =>
        rightsIn([rule]).map((right) => [right, ...(rule.resourceNames ?? [])].join(' ')),
      );
    const reads = (group: string, ...resources: string[]): string[] =>
      resources.flatMap((resource) => ['get', 'list', 'watch'].map((verb) => `${verb} ${group}/${resource}`));
    const outbox = Array.from({ length: 16 }, (_, shard) => `drawbridge-notify-outbox-${shard}`).join(' ');
    assert.deepEqual(held('ClusterRole'), [
      ...reads(
        'crds.wizardofoz.co',
        ...['podaccessrequests', 'execaccessrequests', 'podaccesstemplates', 'execaccesstemplates'],
      ),
      ...reads('access.drawbridge.dev', 'accesssessions', 'notificationproviders', 'notificationsubscriptions'),
      'patch access.drawbridge.dev/notificationproviders/status',
      'patch access.drawbridge.dev/notificationsubscriptions/status',
      'get /namespaces kube-system',
    ]);
    assert.deepEqual(held('Role'), [
      'create coordination.k8s.io/leases',
      ...['get', 'list', 'watch', 'update'].map((verb) => `${verb} coordination.k8s.io/leases drawbridge-notify`),
      ...['get', 'create', 'patch'].map((verb) => `${verb} /configmaps ${outbox}`),
    ]);
    assert.deepEqual(rightsIn(rulesOf(named(all, 'ClusterRole', 'drawbridge-notify-secrets'))), ['get /secrets']);
    const bound = all
      .filter(({ subjects }) => subjects?.some(({ name }: { name: string }) => name === 'drawbridge-notify'))
      .map(({ kind, metadata, roleRef }) => `${kind} ${metadata.namespace ?? ''}: ${roleRef.kind} ${roleRef.name}`);
    assert.deepEqual(bound.sort(), [
      'ClusterRoleBinding : ClusterRole drawbridge-notify',
      `RoleBinding ${namespace}: Role drawbridge-notify`,
      'RoleBinding orders: ClusterRole drawbridge-notify-secrets',
      'RoleBinding payments: ClusterRole drawbridge-notify-secrets',
    ]);
  });

  it('lets it read no Secret without a namespace', async () => {
    const bindings = (await helm.template(namespace, on)).filter(
      ({ roleRef }) => roleRef?.name === 'drawbridge-notify-secrets',
    );
    assert.deepEqual(bindings, []);
  });

  it('lets namespace admins write its kinds, editors not, and viewers read them', async () => {
    const kinds = ['notificationproviders', 'notificationsubscriptions'];
    const mayWrite = (role: Manifest): boolean =>
      kinds.every((kind) => rightsIn(rulesOf(role)).includes(`create access.drawbridge.dev/${kind}`));
    const writers = all.filter(({ kind }) => kind === 'ClusterRole').filter(mayWrite);
    const aggregated = (role: Manifest): string[] =>
      Object.keys(role.metadata.labels ?? {}).filter((label) => label.startsWith('rbac.'));
    assert.deepEqual(writers.map(aggregated), [['rbac.authorization.k8s.io/aggregate-to-admin']]);
    const viewer = rightsIn(rulesOf(named(all, 'ClusterRole', 'drawbridge-viewer')));
    for (const kind of kinds) assert.ok(viewer.includes(`watch access.drawbridge.dev/${kind}`), kind);
    const alone = await helm.template(namespace, { ...on, rbac: { aggregate: false } });
    assert.deepEqual(
      alone
        .filter(({ kind }) => kind === 'ClusterRole')
        .filter(mayWrite)
        .map(aggregated),
      [[]],
    );
  });

  describe('with its NetworkPolicy', () => {
    const egress = async (values: object): Promise<Manifest['spec']> =>
      named(await helm.template(namespace, values), 'NetworkPolicy', 'drawbridge-notify')['spec'].egress;
    const tcp = (...ports: number[]): object[] => ports.map((port) => ({ protocol: 'TCP', port }));
    const dns = { ports: [{ protocol: 'UDP', port: 53 }, ...tcp(53)] };

    it('reaches the API server, DNS, and at three ports public addresses and the allowed ones', async () => {
      const [api, sinks, names] = await egress(everything);
      assert.deepEqual([api, names], [{ ports: tcp(443, 6443) }, dns]);
      assert.deepEqual(sinks.ports, tcp(443, 465, 587));
      const [ipv4, ipv6, ...allowed] = sinks.to.map(({ ipBlock }: { ipBlock: object }) => ipBlock);
      assert.deepEqual([ipv4.cidr, ipv6.cidr], ['0.0.0.0/0', '::/0']);
      for (const range of ['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'])
        assert.ok(ipv4.except.includes(range), range);
      assert.deepEqual(ipv6.except, ['::1/128', 'fc00::/7', 'fe80::/10']);
      assert.deepEqual(allowed, [{ cidr: '10.20.0.0/16' }, { cidr: 'fd00:20::/32' }]);
    });

    it('reaches only the named addresses and ports', async () => {
      const networkPolicy = { notifyCIDRs: ['198.51.100.0/24'], notifyPorts: [8443] };
      const [, sinks] = await egress({ ...on, networkPolicy });
      assert.deepEqual(sinks, { ports: tcp(8443), to: [{ ipBlock: { cidr: '198.51.100.0/24' } }] });
    });

    it('is reached only for probes and metrics', () => {
      const { ingress } = named(all, 'NetworkPolicy', 'drawbridge-notify')['spec'];
      assert.deepEqual(ingress, [{ ports: tcp(8081) }, { ports: tcp(8080) }]);
    });
  });

  const refused: Refused[] = [
    [
      'notify without access',
      { features: { access: false, notify: true } },
      /features\.notify: .* set features\.access/,
    ],
    [
      'Secrets in the namespace of the server',
      { ...on, notify: { secretNamespaces: [namespace] } },
      /notify\.secretNamespaces: gatehouse is the namespace of the server itself/,
    ],
    ['an address that is none', { ...on, notify: { addresses: { alice: 'alice' } } }, /alice/],
    ['two addresses of a user', { ...on, notify: { addresses: { alice: 'a@b.c,d@e.f' } } }, /alice/],
    ['a range that is none', { ...on, notify: { allowedCIDRs: ['10.20.0.0'] } }, /allowedCIDRs/],
  ];
  itRejects(refused, '--namespace', namespace);
});
