import assert from 'node:assert/strict';
import type { Helm, Manifest } from '../../../sandbox/chart/helm.ts';
import { parseGrantable } from '../../../src/access/policy/granted-rules.ts';
import { covers } from '../../../src/rbac/rule-cover.ts';
import { itRejects, named, type Refused, rolesIn, rulesOf, sharedHelm } from '../../support/chart-manifests.ts';

const certificate = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const modes: Readonly<Record<string, object>> = {
  own: { certificates: { mode: 'own' } },
  'cert-manager': { certificates: { mode: 'cert-manager' } },
  secret: { certificates: { mode: 'secret', caBundle: certificate } },
};
const log = { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] };
const everything = {
  namespaces: ['payments', 'orders'],
  grantable: [log],
  podAnnotations: { a: 'b' },
  podLabels: { c: 'd' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  priorityClassName: 'high',
  imagePullSecrets: [{ name: 'registry' }],
  extraArgs: ['--identity=left'],
  networkPolicy: { metricsFrom: [{ namespaceSelector: {} }] },
};

describe('the chart', () => {
  let helm: Helm;
  const namespace = 'gatehouse';

  before(async function () {
    this.timeout(120_000);
    helm = await sharedHelm();
  });

  itRejects([
    ['a value that it does not know', { replica: 3 }, /additional properties 'replica' not allowed/],
    ['an unknown way to certificates', { certificates: { mode: 'acme' } }, /mode.*must be one of/],
    ['a Secret of no name', { certificates: { secretName: 'Not A Name' } }, /secretName.*does not match/],
    ['a Secret without its authority', { certificates: { mode: 'secret' } }, /certificates\.caBundle: .*PEM/],
    [
      'an issuer that no mode uses',
      { certificates: { mode: 'secret', caBundle: certificate, issuerRef: { name: 'x' } } },
      /issuerRef: it is set, but certificates\.mode is secret/,
    ],
    ['invalid namespaces', { namespaces: ['*'] }, /namespaces\/0.*does not match/],
    [
      'an installation without features',
      { features: { access: false } },
      /features: access, binding, and inventory are all false/,
    ],
    ['an address without its mask', { networkPolicy: { apiServerCIDRs: ['10.0.0.1'] } }, /apiServerCIDRs\/0.*match/],
    ['an invalid time', { uninstall: { timeout: 'soon' } }, /timeout.*does not match/],
    ...(
      [
        ['every verb', { verbs: ['*'] }, /verbs has "\*"; allowed are get, list, .*name the verbs/],
        ['the right to grow', { verbs: ['escalate'] }, /verbs has "escalate"; allowed are get/],
        ['every resource', { resources: ['*'] }, /resources has "\*"; .*only pods and their subresources/],
        ['every group', { apiGroups: ['*'] }, /apiGroups has "\*"; .*write apiGroups: \[''\]/],
        ['Roles', { resources: ['roles'] }, /resources has "roles"; .*only pods and their subresources/],
        ['Secrets', { resources: ['pods/log', 'secrets'] }, /resources has "secrets"; .*write, for example, pods\/log/],
      ] as const
    ).map(
      ([what, part, why]): Refused => [
        `to hand out ${what}`,
        { grantable: [log, { ...log, ...part }] },
        new RegExp(`grantable\\[1\\]\\.${why.source}`),
      ],
    ),
    ['a rule without verbs', { grantable: [{ ...log, verbs: [] }] }, /grantable\/0\/verbs/],
  ]);

  const tooOld: Refused = ['a Kubernetes version that is too old', {}, /requires kubeVersion: >=1\.34/];
  itRejects([tooOld], '--kube-version', '1.29.9');

  it('passes the grantable permissions from the values to the server', async () => {
    const manifests = await helm.template(namespace, everything);
    const { data } = named(manifests, 'ConfigMap', 'drawbridge-grantable') as { data?: Record<string, string> };
    const rules = parseGrantable(Buffer.from(data?.['rules.json'] ?? ''));
    assert.ok(covers(rules, everything.grantable) && covers(everything.grantable, rules));
    const deployment = JSON.stringify(named(manifests, 'Deployment', 'drawbridge'));
    assert.match(deployment, /--grantable=\/etc\/drawbridge\/grantable\/rules\.json/);
    const without = await helm.template(namespace, modes['cert-manager'] ?? {});
    assert.ok(!JSON.stringify(without).includes('--grantable'));
  });

  it('has the servers ask for client certificates of the given authority, and otherwise for none', async () => {
    for (const mode of Object.values(modes)) {
      const { certificates } = mode as { certificates: object };
      const values = { certificates: { ...certificates, clientCA: certificate } };
      const manifests = await helm.template(namespace, values);
      const { data } = named(manifests, 'ConfigMap', 'drawbridge-client-ca') as { data?: Record<string, string> };
      assert.equal(data?.['ca.crt'], certificate);
      const deployment = JSON.stringify(named(manifests, 'Deployment', 'drawbridge'));
      for (const part of [
        '--client-ca-file=/etc/drawbridge/client-ca/ca.crt',
        '"mountPath":"/etc/drawbridge/client-ca"',
      ]) {
        assert.ok(deployment.includes(part), part);
      }
      assert.ok(!JSON.stringify(await helm.template(namespace, mode)).includes('client-ca'));
    }
  });

  for (const [mode, values] of Object.entries(modes)) {
    it(`reads only its own Secrets, by name, with certificates ${mode}`, async () => {
      for (const role of rolesIn(await helm.template(namespace, { ...everything, ...values }))) {
        for (const { resources, verbs, resourceNames } of rulesOf(role)) {
          if (!resources.includes('secrets')) continue;
          assert.equal(role.kind, 'Role');
          assert.ok(resourceNames?.length || verbs.join() === 'create', JSON.stringify({ verbs, resourceNames }));
        }
      }
    });
  }

  it('puts no objectSelector on a webhook: the objects of a CONNECT have no labels', async () => {
    const all = await helm.template(namespace, everything);
    const webhooks = all.flatMap((manifest): object[] => manifest['webhooks'] ?? []);
    assert.ok(webhooks.length > 5);
    assert.deepEqual(
      webhooks.filter((webhook) => 'objectSelector' in webhook),
      [],
    );
  });

  it('says that only listed namespaces are served where it denies in others, without their names', async () => {
    const policies = (await helm.template(namespace, { namespaces: ['payments', 'orders'] })).filter(
      ({ kind }) => kind === 'ValidatingAdmissionPolicy',
    );
    const messages = [...JSON.stringify(policies).matchAll(/"message":"([^"]*)"/g)].map(([, message = '']) => message);
    const denials = messages.filter((message) => /^(MissingIdentity|AuthorMissing): /.test(message));
    assert.equal(denials.length, 2);
    for (const message of denials) {
      assert.match(message, /only in a namespace that the chart value namespaces lists; ask an administrator$/);
      assert.doesNotMatch(message, /payments|orders/);
    }
  });

  it('has grantable permissions, and webhooks, only in the configured namespaces', async () => {
    const all = await helm.template(namespace, { namespaces: ['payments', 'orders'] });
    const bindings = all.filter(({ roleRef }) => roleRef?.name === 'drawbridge-grants');
    assert.deepEqual(
      bindings.map(({ kind, metadata }) => [kind, metadata.namespace]),
      [
        ['RoleBinding', 'payments'],
        ['RoleBinding', 'orders'],
      ],
    );
    const everywhere = rulesOf(named(all, 'ClusterRole', 'drawbridge'));
    const writes = everywhere
      .filter(({ apiGroups }) => apiGroups.some((group) => group === '' || group.startsWith('rbac')))
      .flatMap(({ verbs }) => verbs)
      .filter((verb) => verb !== 'list' && verb !== 'watch');
    assert.deepEqual(writes, []);
    const webhooks = all.flatMap((manifest) => manifest['webhooks'] ?? []);
    const isOfGateway = ({ name }: { name: string }): boolean => name === 'gateway.vpod.kb.io';
    assert.equal(webhooks.find(isOfGateway).namespaceSelector, undefined, 'it keeps the gateway out of all others');
    for (const webhook of webhooks.filter((one) => !isOfGateway(one))) {
      const [{ key, operator, values }] = webhook.namespaceSelector.matchExpressions;
      assert.deepEqual([key, operator, values], ['kubernetes.io/metadata.name', 'In', ['payments', 'orders']]);
    }
  });

  it('adds requests to edit and reads to view, and gives no role write access to templates', async () => {
    for (const aggregate of [true, false]) {
      const all = await helm.template(namespace, { rbac: { aggregate } });
      for (const role of rolesIn(all)) {
        const to = Object.keys(role.metadata.labels ?? {}).filter((label) => label.includes('/aggregate-to-'));
        assert.equal(to.length > 0, aggregate && /-(requester|viewer)$/.test(role.metadata.name), role.metadata.name);
        if (role.metadata.name === 'drawbridge') continue;
        const onTemplates = rulesOf(role).filter(({ resources }) => resources.some((one) => /templates/.test(one)));
        // The verb approve changes nothing of a template; the server asks whether voters hold it.
        const own = role.metadata.name === 'drawbridge-approver' ? ['approve'] : [];
        const reads = role.metadata.name === 'drawbridge-test' ? ['list'] : ['get', 'list', 'watch'];
        for (const { verbs } of onTemplates) assert.deepEqual(verbs, [...reads, ...own], role.metadata.name);
      }
    }
  });

  it('removes replicas one at a time, with a budget, and after the endpoints are updated', async () => {
    const all = await helm.template(namespace);
    const { spec } = named(all, 'Deployment', 'drawbridge');
    assert.deepEqual([spec.replicas, spec.strategy.rollingUpdate], [2, { maxUnavailable: 0, maxSurge: 1 }]);
    const [container] = spec.template.spec.containers;
    const { seconds } = container.lifecycle.preStop.sleep;
    assert.ok(seconds >= 5 && spec.template.spec.terminationGracePeriodSeconds >= seconds + 19);
    const budget = named(all, 'PodDisruptionBudget', 'drawbridge');
    assert.deepEqual(budget['spec'].selector.matchLabels, spec.selector.matchLabels);
    const single = await helm.template(namespace, { replicas: 1 });
    assert.ok(!single.some(({ kind }) => kind === 'PodDisruptionBudget'), 'it would block every drain');
  });

  it('adopts existing key Secrets only if configured', async () => {
    for (const adopt of [false, true]) {
      const { spec } = named(await helm.template(namespace, { signingKeys: { adopt } }), 'Deployment', 'drawbridge');
      assert.ok(spec.template.spec.containers[0].args.includes(`--adopt-signing-keys=${adopt}`));
    }
    const { spec } = named(await helm.template(namespace), 'Deployment', 'drawbridge');
    assert.ok(spec.template.spec.containers[0].args.includes('--adopt-signing-keys=false'));
  });

  it('revokes before the uninstallation, unless configured otherwise', async () => {
    const hooks = (manifests: readonly Manifest[]): string[] =>
      manifests
        .map(({ kind, metadata }) => `${kind} ${metadata.annotations?.['helm.sh/hook'] ?? ''}`)
        .filter((text) => /(?:delete|install|upgrade)/.test(text));
    assert.ok(hooks(await helm.template(namespace)).includes('Job pre-delete'));
    assert.deepEqual(hooks(await helm.template(namespace, { uninstall: { revoke: false } })), []);
  });
});
