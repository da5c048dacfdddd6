import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { chart, type Helm, type Manifest } from '../../../sandbox/chart/helm.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { gatewayApiService, gatewayUserOf } from '../../../src/api/gateway/names.ts';
import { headNames } from '../../../src/audit/head.ts';
import { itRejects, named, rightsIn, rolesIn, rulesOf, sharedHelm } from '../../support/chart-manifests.ts';
import { valuesOf } from '../../support/page-commands.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';
import { accountUser } from '../../support/server-token.ts';

const namespace = 'gatehouse';
const apiServiceUrl = `/apis/apiregistration.k8s.io/v1/apiservices/${gatewayApiService}`;
const on = { features: { gateway: true } };
const certificate = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const byHand = { mode: 'secret', caBundle: certificate };
const modes: Readonly<Record<string, object>> = {
  own: {
    ...on,
    gateway: {
      serviceAccountAnnotations: { 'example.org/role': 'recordings' },
      recordings: {
        s3: { bucket: 'recordings', endpoint: 'https://minio', caBundle: certificate, secretName: 's3-credentials' },
      },
    },
  },
  'cert-manager': { ...on, certificates: { mode: 'cert-manager' } },
  secret: {
    ...on,
    certificates: byHand,
    gateway: {
      certificates: { secretName: 'gateway-tls' },
      replicas: 1,
      recordings: { volume: { persistentVolumeClaim: { claimName: 'recordings' } } },
    },
  },
};

describe('the chart with the gateway', () => {
  let plane: Plane;
  let helm: Helm;
  let all: Manifest[];

  before(async function () {
    this.timeout(120_000);
    plane = await sharedPlane();
    helm = await sharedHelm();
    all = await helm.template(namespace, on);
  });

  it('has none of it by default', async () => {
    const names = (await helm.template(namespace))
      .filter(({ kind }) => !kind.startsWith('ValidatingAdmissionPolicy'))
      .map(({ metadata }) => metadata.name);
    assert.deepEqual(
      names.filter((name) => name.includes('gateway')),
      [],
    );
  });

  it('runs two replicas of the image of access under their own ServiceAccount, with no part that changes their feature', () => {
    const { spec } = named(all, 'Deployment', 'drawbridge-gateway');
    const { containers, serviceAccountName } = spec.template.spec;
    const [access] = named(all, 'Deployment', 'drawbridge')['spec'].template.spec.containers;
    assert.deepEqual([spec.replicas, serviceAccountName, containers[0].image], [2, 'drawbridge-gateway', access.image]);
    assert.equal(`system:serviceaccount:${namespace}:${serviceAccountName}`, gatewayUserOf(namespace));
    assert.equal(named(all, 'ServiceAccount', 'drawbridge-gateway')['automountServiceAccountToken'], false);
    assert.deepEqual(containers[0].args, [
      'serve',
      '--features=gateway',
      `--lease-namespace=${namespace}`,
      '--adopt-signing-keys=false',
      '--certificates=own',
      '--certificate-secret=drawbridge-gateway-own-certificate',
      '--peer-address=$(POD_IP)',
      '--health-port=8081',
      '--metrics-port=8080',
      '--log-level=info',
      '--log-format=json',
    ]);
    assert.deepEqual(containers[0].ports[0], { name: 'gateway', containerPort: 9445 });
    assert.ok(!JSON.stringify(spec).includes('webhooks'));
    named(all, 'PodDisruptionBudget', 'drawbridge-gateway');
  });

  it('gives it these permissions, and no others', () => {
    const held = (kind: string, name: string): string[] =>
      rulesOf(named(all, kind, name)).flatMap((rule) =>
        rightsIn([rule]).map((right) => [right, ...(rule.resourceNames ?? [])].join(' ')),
      );
    const { keys, heads } = headNames.gateway;
    const own = 'drawbridge-gateway-own-certificate';
    assert.deepEqual(held('ClusterRole', 'drawbridge-gateway'), [
      'list crds.wizardofoz.co/podaccessrequests',
      'watch crds.wizardofoz.co/podaccessrequests',
      'list crds.wizardofoz.co/execaccessrequests',
      'watch crds.wizardofoz.co/execaccessrequests',
      'list access.drawbridge.dev/accesssessions',
      'watch access.drawbridge.dev/accesssessions',
      `list apiregistration.k8s.io/apiservices ${gatewayApiService}`,
      `watch apiregistration.k8s.io/apiservices ${gatewayApiService}`,
      `patch apiregistration.k8s.io/apiservices ${gatewayApiService}`,
    ]);
    assert.deepEqual(held('ClusterRole', 'drawbridge-gateway-streams'), [
      ...['get', 'list', 'watch'].map((verb) => `${verb} /pods`),
      'get /pods/log',
      ...['exec', 'attach', 'portforward'].flatMap((way) => [`get /pods/${way}`, `create /pods/${way}`]),
      ...['get', 'create', 'delete'].map((verb) => `${verb} access.drawbridge.dev/accesssessions`),
    ]);
    assert.deepEqual(held('Role', 'drawbridge-gateway'), [
      'create /secrets',
      `get /secrets ${keys}`,
      ...['get', 'create', 'patch'].map((verb) => `${verb} /configmaps ${keys} ${heads}`),
      ...['get', 'list', 'watch', 'create', 'patch', 'delete'].map((verb) => `${verb} coordination.k8s.io/leases`),
      ...['list', 'watch', 'patch'].map((verb) => `${verb} /secrets ${own}`),
      ...['get', 'list', 'watch', 'update'].map((verb) => `${verb} coordination.k8s.io/leases ${own}`),
    ]);
    const bound = all
      .filter(({ subjects }) => subjects?.some(({ name }: { name: string }) => name === 'drawbridge-gateway'))
      .map(({ kind, metadata, roleRef }) => `${kind} ${metadata.namespace ?? ''}: ${roleRef.kind} ${roleRef.name}`);
    assert.deepEqual(bound.sort(), [
      'ClusterRoleBinding : ClusterRole drawbridge-gateway',
      'ClusterRoleBinding : ClusterRole drawbridge-gateway-streams',
      `RoleBinding ${namespace}: Role drawbridge-gateway`,
      'RoleBinding kube-system: Role extension-apiserver-authentication-reader',
    ]);
  });

  it('opens streams only in the configured namespaces', async () => {
    const bindings = (await helm.template(namespace, { ...on, namespaces: ['payments', 'orders'] })).filter(
      ({ roleRef }) => roleRef?.name === 'drawbridge-gateway-streams',
    );
    assert.deepEqual(
      bindings.map(({ kind, metadata }) => [kind, metadata.namespace]),
      [
        ['RoleBinding', 'payments'],
        ['RoleBinding', 'orders'],
      ],
    );
  });

  it('lets access hand out grants of the gateway, which it holds itself', () => {
    const rights = rightsIn(rulesOf(named(all, 'ClusterRole', 'drawbridge-grants')));
    for (const verb of ['get', 'create']) assert.ok(rights.includes(`${verb} gateway.drawbridge.dev/grants/proxy`));
    const others = rolesIn(all).filter(({ metadata }) => metadata.name !== 'drawbridge-grants');
    assert.ok(!JSON.stringify(others).includes('grants/proxy'));
  });

  it('lets it reach, and be reached by, only the API server and its replicas, besides probes and metrics', async () => {
    const networkPolicy = { apiServerCIDRs: ['10.0.0.1/32'] };
    const { spec } = named(
      await helm.template(namespace, { ...on, networkPolicy }),
      'NetworkPolicy',
      'drawbridge-gateway',
    );
    const from = [{ ipBlock: { cidr: '10.0.0.1/32' } }];
    const replicas = {
      podSelector: {
        matchLabels: { 'app.kubernetes.io/name': 'drawbridge', 'app.kubernetes.io/component': 'gateway' },
      },
    };
    const peers = [{ protocol: 'TCP', port: 9445 }];
    assert.deepEqual(spec.ingress, [
      { ports: peers, from },
      { ports: peers, from: [replicas] },
      { ports: [{ protocol: 'TCP', port: 8081 }] },
      { ports: [{ protocol: 'TCP', port: 8080 }] },
    ]);
    const ports = [443, 6443].map((port) => ({ protocol: 'TCP', port }));
    assert.deepEqual(spec.egress, [
      { ports, to: from },
      { ports: peers, to: [replicas] },
    ]);
  });

  it('lets the APIService trust the certificate of each mode', async () => {
    const trusted = async (mode: keyof typeof modes): Promise<unknown[]> => {
      const manifests = await helm.template(namespace, modes[mode]);
      const { metadata, spec } = named(manifests, 'APIService', gatewayApiService);
      const { args } = named(manifests, 'Deployment', 'drawbridge-gateway')['spec'].template.spec.containers[0];
      const { volumes = [] } = named(manifests, 'Deployment', 'drawbridge-gateway')['spec'].template.spec;
      const own = args.filter((arg: string) => arg.startsWith('--certificate-secret'));
      return [
        spec.caBundle,
        metadata.annotations,
        ...own,
        ...volumes.flatMap(({ secret }: Manifest) => (secret ? [secret.secretName] : [])),
      ];
    };
    const secret = 'drawbridge-gateway-own-certificate';
    assert.deepEqual(await trusted('own'), [undefined, undefined, `--certificate-secret=${secret}`]);
    assert.deepEqual(await trusted('cert-manager'), [
      undefined,
      { 'cert-manager.io/inject-ca-from': `${namespace}/drawbridge-gateway` },
      'drawbridge-gateway-tls',
    ]);
    assert.deepEqual(await trusted('secret'), [Buffer.from(certificate).toString('base64'), undefined, 'gateway-tls']);
    const { spec } = named(await helm.template(namespace, modes['cert-manager']), 'Certificate', 'drawbridge-gateway');
    assert.deepEqual(
      [spec.secretName, spec.dnsNames[0]],
      ['drawbridge-gateway-tls', `drawbridge-gateway.${namespace}.svc`],
    );
  });

  describe('with the policy of its APIService', () => {
    const authority = { caBundle: Buffer.from(certificate).toString('base64') };
    const byAttacker = { annotations: { 'cert-manager.io/inject-ca-from': 'payments/attacker' } };
    const restored: Readonly<Record<string, readonly [denied: object, metadata?: object][]>> = {
      own: [[authority], [{}, byAttacker]],
      'cert-manager': [[authority], [{}, byAttacker], [{}, { annotations: {} }]],
      secret: [[authority, byAttacker]],
    };
    for (const [mode, denied] of Object.entries(restored)) {
      it(`lets access restore it only as the chart installs it, with certificates of mode ${mode}`, async () => {
        // A namespace for each mode, because the API server may still know the policy of the mode before.
        const home = `${namespace}-${mode}`;
        const thief = await accountUser(plane, 'drawbridge', home);
        const grant = ['create', 'clusterrolebinding', home, '--clusterrole=cluster-admin', `--user=${thief.name}`];
        const manifests = await helm.template(home, modes[mode]);
        const policy = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding']
          .map((kind) => stringify(named(manifests, kind, 'drawbridge-apiservice')))
          .join('---\n');
        const apiService = named(manifests, 'APIService', gatewayApiService);
        const apply = (spec: object, metadata: object): Promise<ApiAnswer> =>
          thief.call('APPLY', `${apiServiceUrl}?dryRun=All&fieldManager=helm`, {
            ...apiService,
            metadata: { ...apiService.metadata, ...metadata },
            spec: { ...apiService['spec'], ...spec },
          });
        const isDenied = async (spec: object, metadata: object): Promise<boolean> => {
          const { status, body } = await apply(spec, metadata);
          return status === 403 && /TokenMisused/.test((body as { message: string }).message);
        };
        await plane.kubectl(['apply', '-f', '-'], { input: policy });
        await plane.kubectl(grant);
        try {
          await until('the policy to apply', () => isDenied({ groupPriorityMinimum: 20_000 }, {}), {
            timeoutMs: 30_000,
          });
          for (const [spec, metadata = {}] of denied)
            assert.ok(await isDenied(spec, metadata), JSON.stringify([spec, metadata]));
          const { status, body } = await apply({}, {});
          assert.equal(status, 201, JSON.stringify(body));
        } finally {
          await plane.kubectl(['delete', '-f', '-'], { input: policy });
          await plane.kubectl(['delete', 'clusterrolebinding', home]);
        }
      });
    }
  });

  describe('with a volume for recordings', () => {
    const volume = { persistentVolumeClaim: { claimName: 'recordings' } };
    const recording = (given: object = {}): object => ({ ...on, gateway: { recordings: { volume }, ...given } });
    const deployment = async (values: object): Promise<Manifest> =>
      named(await helm.template(namespace, values), 'Deployment', 'drawbridge-gateway')['spec'];

    it('mounts it in the gateway alone, for its group, and deletes recordings after the retention', async () => {
      const manifests = await helm.template(namespace, recording());
      const { replicas, template } = named(manifests, 'Deployment', 'drawbridge-gateway')['spec'];
      const { volumes, containers, securityContext } = template.spec;
      assert.deepEqual([replicas, volumes], [2, [{ name: 'recordings', ...volume }]]);
      const folder = '/var/lib/drawbridge/recordings';
      assert.deepEqual(containers[0].volumeMounts, [{ name: 'recordings', mountPath: folder }]);
      const flags = containers[0].args.filter((arg: string) => arg.startsWith('--recording'));
      assert.deepEqual(flags, [`--recordings=${folder}`, '--recording-retention=720h']);
      assert.deepEqual(
        [securityContext.fsGroup, securityContext.fsGroupChangePolicy, containers[0].securityContext],
        [65532, 'OnRootMismatch', { ...containers[0].securityContext, readOnlyRootFilesystem: true }],
      );
      const mounting = manifests.filter(({ spec }) => JSON.stringify(spec?.template ?? {}).includes('recordings'));
      assert.deepEqual(
        mounting.map(({ metadata }) => metadata.name),
        ['drawbridge-gateway'],
      );
    });

    it('stops the one replica before it starts the next, which could not mount the volume on another node', async () => {
      const one = recording({ replicas: 1 });
      assert.deepEqual((await deployment(one))['strategy'], { type: 'Recreate' });
      assert.equal((await deployment(recording()))['strategy'].type, 'RollingUpdate');
      assert.equal((await deployment({ ...on, gateway: { replicas: 1 } }))['strategy'].type, 'RollingUpdate');
    });

    it('has replicas of its own, and a budget for disruptions only with several', async () => {
      const manifests = await helm.template(namespace, recording({ replicas: 1 }));
      const replicas = (name: string): number => named(manifests, 'Deployment', name)['spec'].replicas;
      assert.deepEqual([replicas('drawbridge'), replicas('drawbridge-gateway')], [2, 1]);
      const budgets = manifests
        .filter(({ kind }) => kind === 'PodDisruptionBudget')
        .map(({ metadata }) => metadata.name);
      assert.deepEqual(budgets, ['drawbridge']);
    });

    it('is refused while several replicas share a claim that only one node can mount', async function () {
      this.timeout(60_000);
      const own = await testNamespace('chart');
      const render = (values: object) =>
        helm.run(['template', 'drawbridge', chart, '--namespace', own, '--dry-run=server', '--values', '-'], {
          input: JSON.stringify(values),
          reject: false,
        });
      const claim = async (name: string, mode: string): Promise<void> => {
        await plane.call('POST', `/api/v1/namespaces/${own}/persistentvolumeclaims`, {
          metadata: { name },
          spec: { accessModes: [mode], resources: { requests: { storage: '1Gi' } } },
        });
      };
      await claim('recordings', 'ReadWriteOnce');
      await claim('shared', 'ReadWriteMany');
      const { code, stderr } = await render(recording());
      assert.notEqual(code, 0);
      assert.match(stderr, /PersistentVolumeClaim recordings is ReadWriteOnce, and the gateway has 2 replicas/);
      assert.equal((await render(recording({ replicas: 1 }))).code, 0);
      const shared = { recordings: { volume: { persistentVolumeClaim: { claimName: 'shared' } } } };
      assert.equal((await render({ ...on, gateway: shared })).code, 0);
      const journals = (claimName: string) => ({ audit: { volume: { persistentVolumeClaim: { claimName } } } });
      const refused = await render(journals('recordings'));
      assert.match(refused.stderr, /audit\.volume: PersistentVolumeClaim recordings is ReadWriteOnce, and 2 Pods/);
      assert.equal((await render({ ...journals('recordings'), replicas: 1 })).code, 0);
      assert.equal((await render(journals('shared'))).code, 0);
      await plane.call('DELETE', `/api/v1/namespaces/${own}`);
    });
  });

  it('keeps the audit journal of each Pod in a file of its own on the volume of audit.volume', async () => {
    const volume = { persistentVolumeClaim: { claimName: 'audit' } };
    const features = { access: true, gateway: true, inventory: true, binding: true };
    const manifests = await helm.template(namespace, {
      features,
      inventory: { namespaces: ['fleet'] },
      binding: { bindable: ['widgets.example.org'] },
      audit: { volume },
    });
    for (const name of ['drawbridge', 'drawbridge-gateway', 'drawbridge-inventory']) {
      const pod = named(manifests, 'Deployment', name)['spec'].template.spec;
      const [{ args, env, volumeMounts }] = pod.containers;
      assert.ok(args.includes('--audit-log=/var/lib/drawbridge/audit/$(POD_NAME).jsonl'), args.join(' '));
      assert.deepEqual(env[0], { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } });
      assert.deepEqual(volumeMounts[0], { name: 'audit', mountPath: '/var/lib/drawbridge/audit' });
      assert.deepEqual(pod.volumes[0], { name: 'audit', ...volume });
    }
    const binding = named(manifests, 'Deployment', 'drawbridge-binding')['spec'].template.spec;
    assert.equal(binding.volumes, undefined);
  });

  describe('with a bucket for recordings', () => {
    const inBucket = (s3: object, more: object = {}): object => ({ ...on, gateway: { recordings: { s3 } }, ...more });
    const page = 'docs/tasks/record-sessions-in-a-bucket.md';
    const minio = { ...valuesOf(page, 'minio').gateway.recordings.s3, caBundle: certificate };
    const podOf = (manifests: Manifest[]): Manifest['spec'] =>
      named(manifests, 'Deployment', 'drawbridge-gateway')['spec'].template.spec;
    const flagsOf = (manifests: Manifest[]): string[] =>
      podOf(manifests).containers[0].args.filter((arg: string) => /^--(recording|s3)/.test(arg));
    const envOf = (manifests: Manifest[]): Manifest[] =>
      podOf(manifests).containers[0].env.filter(({ name }: { name: string }) => /^(AWS|NODE)_/.test(name));
    const noNode = { name: 'AWS_EC2_METADATA_DISABLED', value: 'true' };

    it('uses the role of the ServiceAccount at AWS, and not that of the node', async () => {
      const { gateway } = valuesOf(page, 'role-arn');
      const recordings = { ...gateway.recordings, retention: '24h' };
      const manifests = await helm.template(namespace, { ...on, gateway: { ...gateway, recordings } });
      assert.deepEqual(flagsOf(manifests), [
        '--recordings=s3://recordings/prod',
        '--s3-region=eu-west-1',
        '--recording-retention=24h',
      ]);
      assert.deepEqual(envOf(manifests), [noNode]);
      assert.equal(podOf(manifests).volumes, undefined);
      assert.deepEqual(named(manifests, 'ServiceAccount', 'drawbridge-gateway').metadata.annotations, {
        'eks.amazonaws.com/role-arn': 'arn:aws:iam::123456789012:role/recordings',
      });
      assert.equal(named(manifests, 'ServiceAccount', 'drawbridge').metadata.annotations, undefined);
    });

    it('replaces a volume, which the value null removes', async () => {
      const recordings = { s3: minio, volume: null };
      const moved = podOf(await helm.template(namespace, { ...on, gateway: { recordings } }));
      assert.deepEqual(moved, podOf(await helm.template(namespace, inBucket(minio))));
    });

    it('takes the credentials and the authority of another server from objects', async () => {
      const manifests = await helm.template(namespace, inBucket(minio));
      assert.deepEqual(flagsOf(manifests), [
        '--recordings=s3://recordings/prod',
        '--s3-endpoint=https://minio.example.org:9000',
        '--recording-retention=720h',
      ]);
      const fromSecret = (name: string): object => ({
        name,
        valueFrom: { secretKeyRef: { name: 's3-credentials', key: name } },
      });
      assert.deepEqual(envOf(manifests), [
        noNode,
        { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/drawbridge/s3-ca/ca.crt' },
        fromSecret('AWS_ACCESS_KEY_ID'),
        fromSecret('AWS_SECRET_ACCESS_KEY'),
      ]);
      assert.equal(named(manifests, 'ConfigMap', 'drawbridge-gateway-s3-ca')['data']['ca.crt'], certificate);
      assert.deepEqual(podOf(manifests).containers[0].volumeMounts, [
        { name: 's3-ca', mountPath: '/etc/drawbridge/s3-ca', readOnly: true },
      ]);
      assert.equal(named(manifests, 'Deployment', 'drawbridge-gateway')['spec'].strategy.type, 'RollingUpdate');
    });

    it('lets the gateway, and no other feature, reach the server and DNS', async () => {
      const egress = async (s3: object, networkPolicy: object = {}, feature = '-gateway'): Promise<unknown> => {
        const manifests = await helm.template(namespace, inBucket(s3, { networkPolicy }));
        // After the API server and, for the gateway, its replicas.
        return named(manifests, 'NetworkPolicy', `drawbridge${feature}`)['spec'].egress.slice(feature === '' ? 1 : 2);
      };
      const tcp = (...ports: number[]): object[] => ports.map((port) => ({ protocol: 'TCP', port }));
      const dns = { ports: [{ protocol: 'UDP', port: 53 }, ...tcp(53)] };
      const aws = { bucket: 'recordings', region: 'eu-west-1' };
      assert.deepEqual(await egress(aws), [{ ports: tcp(443) }, dns]);
      assert.deepEqual(await egress(minio), [{ ports: tcp(9000) }, dns]);
      assert.deepEqual(await egress(aws, { recordingPorts: [443, 80], recordingCIDRs: ['10.1.0.0/16'] }), [
        { ports: tcp(443, 80), to: [{ ipBlock: { cidr: '10.1.0.0/16' } }] },
        dns,
      ]);
      assert.deepEqual(await egress(minio, {}, ''), []);
    });
  });

  itRejects([
    [
      'the gateway without access',
      { features: { access: false, gateway: true } },
      /features\.gateway: .*features\.access/,
    ],
    ['an unknown value', { ...on, gateway: { port: 1 } }, /gateway.*additional properties 'port' not allowed/],
    ['a Secret of no name', { ...on, gateway: { certificates: { secretName: 'A B' } } }, /secretName.*does not match/],
    [
      'two places for recordings',
      {
        ...on,
        gateway: { recordings: { volume: { nfs: {} }, s3: { bucket: 'recordings', region: 'eu-west-1' } } },
      },
      /gateway\.recordings: volume and s3\.bucket are both set/,
    ],
    [
      'a bucket without a region',
      { ...on, gateway: { recordings: { s3: { bucket: 'recordings' } } } },
      /gateway\.recordings\.s3\.region: it is empty/,
    ],
    [
      'an S3 server without TLS',
      { ...on, gateway: { recordings: { s3: { bucket: 'recordings', endpoint: 'http://minio' } } } },
      /endpoint': 'http:\/\/minio' does not match/,
    ],
    [
      'two sources of the volume for recordings',
      { ...on, gateway: { recordings: { volume: { nfs: {}, hostPath: {} } } } },
      /volume': maxProperties/,
    ],
    [
      'a volume for recordings that is deleted with its Pod',
      { ...on, gateway: { recordings: { volume: { emptyDir: {} } } } },
      /gateway\.recordings\.volume: it is an emptyDir/,
    ],
    [
      'a volume for the journal that is deleted with its Pod',
      { audit: { volume: { emptyDir: {} } } },
      /audit\.volume: it is an emptyDir/,
    ],
    [
      'certificates by hand without a Secret',
      { ...on, certificates: byHand },
      /gateway\.certificates\.secretName: it is empty/,
    ],
    [
      'the Secret of access',
      { ...on, certificates: { secretName: 'shared' }, gateway: { certificates: { secretName: 'shared' } } },
      /gateway\.certificates\.secretName: shared is the Secret of access/,
    ],
  ]);
});
