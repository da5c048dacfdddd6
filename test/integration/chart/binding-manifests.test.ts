import assert from 'node:assert/strict';
import type { Helm, Manifest } from '../../../sandbox/chart/helm.ts';
import {
  itRejects,
  named,
  namesOf,
  type Refused,
  rightsIn,
  rolesIn,
  rulesOf,
  sharedHelm,
} from '../../support/chart-manifests.ts';

const namespace = 'gatehouse';
const binding = { bindable: ['widgets.acme.example', 'big-gears.mills.acme.example'] };
const alone = { features: { access: false, binding: true }, binding };
const everything = {
  ...alone,
  binding: {
    ...binding,
    bindableNamespaces: ['acme'],
    claimable: ['configmaps', 'secrets', 'serviceaccounts'],
    secretNamespaces: ['acme', 'kube-bind'],
  },
  networkPolicy: { providerPorts: [8443] },
};

const argsOf = (manifests: readonly Manifest[]): string[] =>
  named(manifests, 'Deployment', 'drawbridge-binding')['spec'].template.spec.containers[0].args;

describe('the chart with binding', () => {
  let helm: Helm;

  before(async function () {
    this.timeout(120_000);
    helm = await sharedHelm();
  });

  const refused: Refused[] = [
    ['an empty list', { bindable: [] }, /binding\.bindable: .*needs the kinds of providers that this cluster may bind/],
    ['every kind', { bindable: ['*'] }, /bindable\/0.*does not match/],
    ['every kind of a group', { bindable: ['*.acme.example'] }, /bindable\/0.*does not match/],
    ['Secrets', { bindable: ['secrets'] }, /bindable\/0.*does not match/],
    ['Deployments', { bindable: ['deployments.apps'] }, /bindable\/0.*does not match/],
    ['Roles', { bindable: ['roles.rbac.authorization.k8s.io'] }, /bindable\/0/],
    ['bindings', { bindable: ['apiservicebindings.kube-bind.io'] }, /bindable\/0/],
    ['access', { bindable: ['podaccesstemplates.crds.wizardofoz.co'] }, /bindable\/0/],
    ['an invalid namespace', { ...binding, bindableNamespaces: ['*'] }, /bindableNamespaces\/0.*does not match/],
    ['a claim on Pods', { ...binding, claimable: ['pods'] }, /claimable\/0.*must be one of/],
    ['Secrets of every namespace', { ...binding, secretNamespaces: ['*'] }, /secretNamespaces\/0.*does not match/],
    ['an unknown value', { ...binding, bind: [] }, /additional properties 'bind' not allowed/],
  ];
  itRejects(refused.map(([what, values, message]) => [`${what} as bindable`, { ...alone, binding: values }, message]));

  it('works alone: without webhooks, certificates, access kinds, their policies, and hooks', async () => {
    const all = await helm.template(namespace, alone, '--include-crds');
    assert.deepEqual(namesOf(all), [
      'ClusterRole drawbridge-binding',
      'ClusterRole drawbridge-binding-secrets',
      'ClusterRoleBinding drawbridge-binding',
      'Deployment drawbridge-binding',
      'Namespace kube-bind',
      'NetworkPolicy drawbridge-binding',
      'PodDisruptionBudget drawbridge-binding',
      'Role drawbridge-binding',
      'RoleBinding drawbridge-binding',
      'RoleBinding drawbridge-binding-secrets',
      'Service drawbridge-binding-metrics',
      'ServiceAccount drawbridge-binding',
      'ValidatingAdmissionPolicy drawbridge-bundled-bindings',
      'ValidatingAdmissionPolicyBinding drawbridge-bundled-bindings',
    ]);
    assert.doesNotMatch(JSON.stringify(all), /wizardofoz|helm\.sh\/hook"|9443|tls/);
    const grantable = [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }];
    for (const values of [{ grantable }, { certificates: { mode: 'cert-manager' } }, { namespaces: ['payments'] }]) {
      assert.deepEqual(await helm.template(namespace, { ...alone, ...values }, '--include-crds'), all);
    }
  });

  it("runs as a konnector with kube-bind's Lease", async () => {
    assert.deepEqual(argsOf(await helm.template(namespace, alone)), [
      'serve',
      '--features=binding',
      `--lease-namespace=${namespace}`,
      '--binding-lease-namespace=kube-bind',
      '--bindable=widgets.acme.example,big-gears.mills.acme.example',
      '--health-port=8081',
      '--metrics-port=8080',
      '--log-level=info',
      '--log-format=json',
    ]);
    assert.ok(argsOf(await helm.template(namespace, everything)).includes('--bindable-namespaces=acme'));
  });

  it('can be installed beside a release with access, in its own namespace', async () => {
    const cluster = (manifests: readonly Manifest[]): string[] =>
      namesOf(manifests.filter(({ metadata }) => metadata.namespace === undefined));
    const access = cluster(await helm.template(namespace));
    assert.deepEqual(
      cluster(await helm.template('kube-bind', alone)).filter((name) => access.includes(name)),
      [],
    );
  });

  it('has permissions on bindable kinds only', async () => {
    const role = named(await helm.template(namespace, alone), 'ClusterRole', 'drawbridge-binding');
    const known = ['', 'apiextensions.k8s.io', 'kube-bind.io', 'events.k8s.io', 'authorization.k8s.io'];
    const bound = rulesOf(role).filter(({ apiGroups }) => !apiGroups.some((group) => known.includes(group)));
    const of = (kind: string): string[] => ['get', 'list', 'watch', 'patch'].map((verb) => `${verb} ${kind}`);
    assert.deepEqual(
      rightsIn(bound),
      ['acme.example/widgets', 'mills.acme.example/big-gears'].flatMap((kind) => [...of(kind), `patch ${kind}/status`]),
    );
    const definitions = rulesOf(role).filter(({ resources }) => resources.includes('customresourcedefinitions'));
    for (const { verbs, resourceNames } of definitions) {
      if (verbs.some((verb) => !['list', 'watch', 'create'].includes(verb))) assert.ok(resourceNames?.length);
      if (verbs.includes('delete')) assert.deepEqual(resourceNames, binding.bindable);
    }
  });

  it('reads Secrets only in the namespace kube-bind, unless the values name others', async () => {
    const where = async (values: object): Promise<unknown[]> => {
      const all = await helm.template(namespace, values);
      const withSecrets = rolesIn(all).filter((role) =>
        rulesOf(role).some(({ resources }) => resources.includes('secrets')),
      );
      const bindings = all.filter(({ roleRef }) =>
        withSecrets.some((role) => roleRef?.kind === role.kind && roleRef.name === role.metadata.name),
      );
      return bindings.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}`).sort();
    };
    assert.deepEqual(await where(alone), ['RoleBinding kube-bind']);
    const more = { ...binding, secretNamespaces: ['acme', 'kube-bind'] };
    assert.deepEqual(await where({ ...alone, binding: more }), ['RoleBinding acme', 'RoleBinding kube-bind']);
    assert.deepEqual(await where({ ...alone, binding: { ...binding, claimable: ['secrets'] } }), [
      'ClusterRoleBinding ',
      'RoleBinding kube-bind',
    ]);
  });

  it('keeps the namespace of the kubeconfigs on uninstall, and does not create it if it is the release namespace', async () => {
    const made = named(await helm.template(namespace, alone), 'Namespace', 'kube-bind');
    assert.equal(made.metadata.annotations?.['helm.sh/resource-policy'], 'keep');
    assert.ok(!(await helm.template('kube-bind', alone)).some(({ kind }) => kind === 'Namespace'));
  });
});
