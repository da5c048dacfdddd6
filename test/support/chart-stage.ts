import assert from 'node:assert/strict';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { chart, Helm } from '../../sandbox/chart/helm.ts';
import { HostKubelet, hostAnnotation } from '../../sandbox/chart/host-kubelet.ts';
import { issue } from '../../sandbox/pki.ts';
import { type Plane, startPlane } from '../../sandbox/plane.ts';
import { until } from '../../sandbox/wait.ts';
import { requestLabel } from '../../src/api/access/names.ts';
import { accessUrl, type Child, childrenOf, type Manifest, type StoredRequest } from './access-requests.ts';
import { installCertManagerCrds } from './module-crds.ts';
import { Person } from './person.ts';

export type CertificateMode = 'own' | 'cert-manager' | 'secret';

const service = 'drawbridge-webhook';
const root = join(chart, '../..');

const webhookKinds = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];

interface WebhookConfiguration {
  readonly metadata: {
    readonly name: string;
    readonly generation: number;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly webhooks: {
    readonly name: string;
    readonly clientConfig: { readonly service: { readonly path: string } };
  }[];
}

/** Resolves when every replica of every Deployment of a namespace is ready; rejects with the logs of the replicas. */
export async function rolledOut(plane: Plane, kubelet: HostKubelet, namespace: string): Promise<void> {
  const { stdout: names } = await plane.kubectl(['get', 'deployments', '-n', namespace, '-o', 'name']);
  for (const name of names.trim().split('\n')) {
    const args = ['rollout', 'status', name, '-n', namespace, '--timeout=60s'];
    const { code, stdout, stderr } = await plane.kubectl(args, { reject: false });
    assert.equal(code, 0, `${stdout}${stderr}${await kubelet.logs()}`);
  }
}

/**
 * The chart, installed by Helm on a plane of its own, with its Pods running as processes of this machine. The `values` of the tests
 * contain only what the sandbox needs: an annotation by which kwok ignores the Pods, and the port of the Services.
 */
export class ChartStage {
  readonly plane: Plane;
  readonly helm: Helm;
  readonly kubelet: HostKubelet;
  /** Namespace of the release. */
  readonly namespace = 'drawbridge-system';
  /** Namespace of the workload and the templates of `examples/`. */
  readonly payments = 'payments';
  /** User name of the server of access. */
  readonly serverUser = `system:serviceaccount:${this.namespace}:drawbridge`;
  /** User name of the server of the inventory. */
  readonly inventoryUser = `${this.serverUser}-inventory`;
  /** A user of group devs, which the templates allow. */
  readonly alice: Person;
  /** A user of group qa, which no template allows. */
  readonly bob: Person;

  private constructor(plane: Plane, kubelet: HostKubelet, [alice, bob]: [Person, Person]) {
    this.plane = plane;
    this.kubelet = kubelet;
    this.helm = new Helm({ program: plane.binaries.helm, home: plane.directory, kubeconfig: plane.adminKubeconfig });
    this.alice = alice;
    this.bob = bob;
  }

  /** `programs`: paths of programs by image name. Default: `dist/drawbridge.js`. */
  static async open(programs: ReadonlyMap<string, string> = new Map()): Promise<ChartStage> {
    const plane = await startPlane();
    const kubelet = await HostKubelet.start(plane, 'drawbridge-system', programs);
    const people = [Person.of(plane, 'alice', ['devs']), Person.of(plane, 'bob', ['qa'])] as const;
    const stage = new ChartStage(plane, kubelet, await Promise.all(people));
    await plane.kubectl(['create', 'namespace', stage.namespace]);
    await stage.#apply('examples/workload.yaml', 'examples/rbac.yaml');
    await plane.kubectl(['create', 'rolebinding', 'qa', '--role=request-access', '--group=qa', '-n', stage.payments]);
    return stage;
  }

  async close(): Promise<void> {
    await this.kubelet.stop();
    await this.plane.stop();
  }

  /** Runs `helm install` and the other steps of an administrator; resolves when every replica is ready. */
  async install(mode: CertificateMode, values: object = {}, from = chart): Promise<void> {
    if (mode === 'secret') await this.renewCertificate();
    if (mode === 'cert-manager') await installCertManagerCrds(this.plane);
    await this.helmWithValues(['install', 'drawbridge', from], mode, values);
    await this.whenInstalled(mode);
    await this.#apply('examples/templates.yaml');
    for (const name of ['podaccesstemplate/payments-shell', 'execaccesstemplate/payments-exec']) {
      await this.plane.kubectl([
        'wait',
        name,
        '-n',
        this.payments,
        '--for=jsonpath={.status.ready}=true',
        '--timeout=30s',
      ]);
    }
  }

  /** Resolves when the Pods of a new release are ready, the API server calls them, and the policies are in force. */
  async whenInstalled(mode: CertificateMode): Promise<void> {
    await this.kubelet.switchService(service);
    if (mode === 'cert-manager') await this.#emulateCertManager();
    await this.rolledOut();
    // After an earlier installation, nothing opens for 40 s.
    await until('the policies to be in force', () => this.#arePoliciesInForce(), { timeoutMs: 90_000 });
  }

  async #arePoliciesInForce(): Promise<boolean> {
    const ofAccess = this.kubelet.pods.filter(
      ({ manifest }) => manifest.metadata.labels?.['app.kubernetes.io/component'] === 'server',
    );
    const answers = ofAccess.map((pod) => fetch(`http://127.0.0.1:${pod.port('health')}/readyz`));
    return (await Promise.all(answers)).every(({ status }) => status === 200);
  }

  async upgrade(mode: CertificateMode, values: object = {}, from = chart): Promise<void> {
    await this.helmWithValues(['upgrade', 'drawbridge', from], mode, values);
    await this.rolledOut();
  }

  /** Resolves with the output of helm. */
  async uninstall(): Promise<string> {
    const { stdout, stderr } = await this.helm.run(
      ['uninstall', 'drawbridge', '--namespace', this.namespace, '--timeout', '60s'],
      { reject: false },
    );
    return `${stdout}${stderr}`;
  }

  /** Resolves when every replica of every feature is ready. */
  async rolledOut(): Promise<void> {
    await rolledOut(this.plane, this.kubelet, this.namespace);
  }

  async helmWithValues(command: string[], mode: CertificateMode, values: object): Promise<void> {
    const input = JSON.stringify({ ...this.values(mode), ...values });
    await this.helm.run([...command, '--namespace', this.namespace, '--values', '-'], { input });
  }

  /** What the sandbox needs. */
  values(mode: CertificateMode): object {
    const authority = this.plane.authority.certificate;
    return {
      certificates: { mode, ...(mode === 'secret' ? { caBundle: authority } : {}) },
      service: { port: this.kubelet.port },
      podAnnotations: { [hostAnnotation]: 'true' },
      uninstall: { timeout: '40s' },
    };
  }

  /** Each webhook configuration with how often its content was changed, and the paths that the API server calls. */
  async webhooksAsCalled(): Promise<{ name: string; generation: number; paths: string[] }[]> {
    const lists = webhookKinds.map(async (plural) => {
      const url = `/apis/admissionregistration.k8s.io/v1/${plural}?labelSelector=app.kubernetes.io/name=drawbridge`;
      return ((await this.plane.probe(url)).body as { items: WebhookConfiguration[] }).items;
    });
    return (await Promise.all(lists)).flat().map(({ metadata: { name, generation }, webhooks }) => ({
      name,
      generation,
      paths: webhooks.map(({ clientConfig }) => clientConfig.service.path),
    }));
  }

  /** Writes a new serving certificate of the same authority into the Secret that the Pods mount. */
  async renewCertificate(): Promise<void> {
    const { certificate, key } = issue(this.plane.authority, {
      commonName: service,
      serves: [`${service}.${this.namespace}.svc`],
    });
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'drawbridge-webhook-tls', namespace: this.namespace },
      type: 'kubernetes.io/tls',
      stringData: { 'tls.crt': certificate, 'tls.key': key },
    };
    await this.plane.kubectl(['apply', '-f', '-'], { input: stringify(secret) });
  }

  /** Issues the chart's Certificate like cert-manager, and sets `caBundle` of the annotated webhooks like its cainjector. */
  async #emulateCertManager(): Promise<void> {
    await this.renewCertificate();
    const caBundle = Buffer.from(this.plane.authority.certificate).toString('base64');
    for (const plural of webhookKinds) {
      const url = `/apis/admissionregistration.k8s.io/v1/${plural}`;
      const { items } = (await this.plane.probe(url)).body as { items: WebhookConfiguration[] };
      for (const { metadata, webhooks } of items) {
        if (metadata.annotations?.['cert-manager.io/inject-ca-from'] !== `${this.namespace}/${service}`) continue;
        const trusted = webhooks.map((one) => ({ ...one, clientConfig: { ...one.clientConfig, caBundle } }));
        await this.plane.call('PATCH', `${url}/${metadata.name}`, { webhooks: trusted });
      }
    }
  }

  /** Creates a request and resolves when it is ready. */
  async createReady(person: Person, manifest: Manifest): Promise<StoredRequest> {
    const url = accessUrl(manifest.kind, this.payments);
    const { status, body } = await person.call('POST', url, manifest);
    assert.equal(status, 201, `${JSON.stringify(body)}\n${await this.kubelet.logs()}`);
    const { metadata } = body as StoredRequest;
    return until(
      `${manifest.kind} ${metadata.name} to be ready`,
      async () => {
        const found = (await this.plane.probe(`${url}/${metadata.name}`)).body as StoredRequest;
        return found.status?.ready === true && found;
      },
      { timeoutMs: 30_000 },
    );
  }

  children(uid: string): Promise<Child[]> {
    return childrenOf(this.plane, this.payments, uid);
  }

  /** URL and name of every object in the cluster that was created for a request. */
  async granted(): Promise<string[]> {
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const found: string[] = [];
    for (const url of ['/api/v1/pods', `${rbac}/roles`, `${rbac}/rolebindings`]) {
      const { status, body } = await this.plane.probe(`${url}?labelSelector=${requestLabel}`);
      assert.equal(status, 200, url);
      for (const { metadata } of (body as { items: StoredRequest[] }).items) found.push(`${url} ${metadata.name}`);
    }
    return found;
  }

  /** Waits until the replicas of an uninstalled release have ended. Deletes their Leases, because they no longer have the permission. */
  async leftovers(): Promise<void> {
    await until('the replicas to end', () => this.kubelet.pods.length === 0, { timeoutMs: 45_000 });
    await this.plane.kubectl(['delete', 'leases', '--all', '-n', this.namespace]);
  }

  async deleteRequests(): Promise<void> {
    for (const kind of ['PodAccessRequest', 'ExecAccessRequest']) {
      await this.plane.call('DELETE', accessUrl(kind, this.payments));
    }
  }

  async #apply(...files: string[]): Promise<void> {
    for (const file of files) await this.plane.kubectl(['apply', '-f', join(root, file)]);
  }
}
