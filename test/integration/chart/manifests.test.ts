import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { chart, type Helm, type Manifest } from '../../../sandbox/chart/helm.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { named, serverRightsIn, sharedHelm, shippedIn, tooMuchIn } from '../../support/chart-manifests.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

const namespace = 'gatehouse';
const certificate = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const byHand = { mode: 'secret', caBundle: certificate };
const gateway = { access: true, gateway: true };
const inventory = { namespaces: ['fleet', 'labs'] };
const binding = { bindable: ['widgets.acme.example', 'big-gears.mills.acme.example'] };
const inventoryAlone = { features: { access: false, inventory: true }, inventory };
const bindingAlone = { features: { access: false, binding: true }, binding };

/** Most values of access that only add to the manifests. */
const everything = {
  namespaces: ['payments', 'orders'],
  grantable: [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }],
  podAnnotations: { a: 'b' },
  podLabels: { c: 'd' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  priorityClassName: 'high',
  commonLabels: { team: 'platform' },
  deploymentAnnotations: { e: 'f' },
  revisionHistoryLimit: 2,
  topologySpreadConstraints: [{ topologyKey: 'rack', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }],
  extraEnv: [{ name: 'HTTPS_PROXY', value: 'http://proxy' }],
  extraVolumes: [{ name: 'extra', emptyDir: {} }],
  extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
  imagePullSecrets: [{ name: 'registry' }],
  extraArgs: ['--identity=left'],
  networkPolicy: { metricsFrom: [{ namespaceSelector: {} }] },
};

const installations: Readonly<Record<string, object>> = {
  access: everything,
  'access, with cert-manager': { ...everything, certificates: { mode: 'cert-manager' } },
  'access, with certificates by hand': { ...everything, certificates: byHand },
  'the gateway, with a bucket for recordings': {
    features: gateway,
    gateway: {
      serviceAccountAnnotations: { 'example.org/role': 'recordings' },
      recordings: {
        s3: { bucket: 'recordings', endpoint: 'https://minio', caBundle: certificate, secretName: 's3-credentials' },
      },
    },
  },
  'the gateway, with cert-manager': { features: gateway, certificates: { mode: 'cert-manager' } },
  'the gateway, with certificates by hand and a volume for recordings': {
    features: gateway,
    certificates: byHand,
    gateway: {
      certificates: { secretName: 'gateway-tls' },
      replicas: 1,
      recordings: { volume: { persistentVolumeClaim: { claimName: 'recordings' } } },
    },
  },
  'binding alone': {
    ...bindingAlone,
    binding: {
      ...binding,
      bindableNamespaces: ['acme'],
      claimable: ['configmaps', 'secrets', 'serviceaccounts'],
      secretNamespaces: ['acme', 'kube-bind'],
    },
    networkPolicy: { providerPorts: [8443] },
  },
  'the inventory alone': inventoryAlone,
  notify: {
    features: { notify: true },
    notify: {
      secretNamespaces: ['payments'],
      allowedCIDRs: ['10.20.0.0/16', 'fd00:20::/32'],
      addresses: { alice: 'alice@example.org' },
    },
  },
  'all features': {
    features: { ...gateway, binding: true, inventory: true, notify: true },
    binding,
    inventory: { ...inventory, apiUrl: 'https://api.example.org', callbackUrl: 'https://callbacks.example.org:8443' },
    networkPolicy: { componentPorts: [8443] },
    namespaces: ['payments'],
  },
};

describe('the manifests of the chart', () => {
  let plane: Plane;
  let helm: Helm;
  before(async function () {
    this.timeout(120_000);
    plane = await sharedPlane();
    helm = await sharedHelm();
  });

  for (const [what, values] of Object.entries(installations)) {
    describe(`with ${what}`, () => {
      let all: Manifest[];
      before(async () => {
        all = await helm.template(namespace, values);
      });

      it('pass helm lint', async () => {
        const input = JSON.stringify(values);
        await helm.run(['lint', '--strict', '--namespace', namespace, chart, '--values', '-'], { input });
      });

      it('are accepted by the API server', async function () {
        this.timeout(60_000);
        const own = await testNamespace('chart');
        const placed = await helm.template(own, { ...values, crds: { enabled: false } });
        // A dry run does not create the namespaces of the other objects.
        const here = placed
          .filter(({ apiVersion, kind }) => !apiVersion.startsWith('cert-manager.io/') && kind !== 'Namespace')
          // The account of the Pod of helm test does not exist in a dry run.
          .filter(({ kind }) => kind !== 'Pod')
          .map((one) => (one.metadata.namespace ? { ...one, metadata: { ...one.metadata, namespace: own } } : one));
        const { stderr } = await plane.kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], {
          input: here.map((manifest) => stringify(manifest)).join('---\n'),
        });
        assert.doesNotMatch(stderr.replaceAll(/.*last-applied-configuration.*\n/g, ''), /Warning/);
        await plane.call('DELETE', `/api/v1/namespaces/${own}`);
      });

      it('give no account a wildcard or a permission to escalate', () => {
        assert.deepEqual(tooMuchIn(all), []);
      });

      it('run every Pod with the lowest privileges', () => {
        for (const { kind, spec } of all.filter((one) => ['Deployment', 'Job', 'Pod'].includes(one.kind))) {
          const pod = kind === 'Pod' ? spec : spec.template.spec;
          const { runAsNonRoot, runAsUser, runAsGroup, seccompProfile } = pod.securityContext;
          assert.deepEqual(
            { runAsNonRoot, runAsUser, runAsGroup, seccompProfile },
            { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: { type: 'RuntimeDefault' } },
            kind,
          );
          for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) assert.equal(pod[field], undefined, field);
          assert.ok(!(pod.volumes ?? []).some((volume: object) => 'hostPath' in volume));
          for (const container of pod.containers) {
            assert.deepEqual(container.securityContext, {
              allowPrivilegeEscalation: false,
              privileged: false,
              readOnlyRootFilesystem: true,
              runAsNonRoot: true,
              capabilities: { drop: ['ALL'] },
              seccompProfile: { type: 'RuntimeDefault' },
            });
            assert.ok(container.resources.limits.memory && container.resources.requests.cpu);
          }
        }
        for (const { kind, automountServiceAccountToken } of all)
          if (kind === 'ServiceAccount') assert.equal(automountServiceAccountToken, false);
      });
    });
  }

  const features = [
    { name: 'access', alone: {}, webhooks: 'webhooks', crds: 'charts/drawbridge/files/crds' },
    {
      name: 'the inventory',
      alone: { ...inventoryAlone, namespaces: ['payments'] },
      webhooks: 'webhooks/inventory',
      crds: 'charts/drawbridge/files/inventory-crds',
    },
  ];
  for (const { name, alone, webhooks: folder, crds } of features) {
    it(`register exactly the webhooks of ${folder}, in the namespace of ${name}`, async () => {
      const rendered = (await helm.template(namespace, alone)).filter(({ kind }) =>
        kind.endsWith('WebhookConfiguration'),
      );
      const shipped = shippedIn(folder);
      assert.equal(rendered.length, shipped.length);
      for (const { kind, metadata, webhooks } of shipped) {
        const here = JSON.parse(JSON.stringify(webhooks).replaceAll('drawbridge-system', namespace));
        assert.deepEqual(named(rendered, kind, metadata.name)['webhooks'], here);
      }
    });

    it(`install the CRDs of ${name} as templates, which Helm upgrades, and leave them when it is uninstalled`, async () => {
      const rendered = (await helm.template(namespace, alone, '--include-crds')).filter(
        ({ kind }) => kind === 'CustomResourceDefinition',
      );
      const shipped = shippedIn(crds);
      assert.equal(rendered.length, shipped.length);
      for (const { kind, metadata, spec } of shipped) {
        const crd = named(rendered, kind, metadata.name);
        assert.deepEqual(crd['spec'], spec);
        assert.equal(crd.metadata.annotations?.['helm.sh/resource-policy'], 'keep');
      }
    });
  }

  for (const [name, alone] of Object.entries({ binding: bindingAlone, inventory: inventoryAlone })) {
    it(`are those of access and of ${name} when both are installed`, async () => {
      const [both, access, lone] = [
        await helm.template(namespace, { ...alone, features: { access: true, [name]: true } }),
        await helm.template(namespace),
        await helm.template(namespace, alone),
      ];
      const namesOf = (manifests: readonly Manifest[]): Set<string> =>
        new Set(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
      assert.deepEqual(namesOf(both), namesOf([...access, ...lone]));
      assert.deepEqual(new Set(serverRightsIn(both)), new Set([...serverRightsIn(access), ...serverRightsIn(lone)]));
      for (const manifest of [...access, ...lone]) {
        const { kind, metadata } = manifest;
        assert.ok(
          both.some((one) => isDeepStrictEqual(one, manifest)),
          `${kind} ${metadata.name}`,
        );
      }
    });
  }
});
