import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { checkout } from '../../sandbox/node/images/dockerfile.ts';
import { drawbridgeImage } from '../../sandbox/node/images/images.ts';
import type { RealNode } from '../../sandbox/node/node.ts';
import { Terminal } from '../../sandbox/terminal.ts';
import { until } from '../../sandbox/wait.ts';
import { accessUrl, type Manifest, type StoredRequest } from './access-requests.ts';
import { Client, program as client } from './client.ts';
import { sharedNode } from './node.ts';
import { commandsOf, scriptOf, tryAsReader } from './page-commands.ts';
import { Person } from './person.ts';
import { shown } from './shown-output.ts';

/** Folders of the node that hold what must outlive the Pods. */
const recordings = '/var/lib/recordings';
const journals = '/var/lib/journals';
/** What templates may grant besides exec: what kubectl debug needs. */
export const grantable = [
  { apiGroups: [''], resources: ['pods/ephemeralcontainers'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['pods/attach'], verbs: ['get', 'create'] },
];
/** For a hook that may have to start a node and install drawbridge first. */
export const installLimitMs = 600_000;

/** drawbridge on a real node, installed by the commands of the documents, and the people of `examples/`. */
export class NodeStage {
  readonly node: RealNode;
  /** The client of drawbridge, in the namespace of the workload. */
  readonly client: Client;
  /** A user of group devs, which the templates allow. */
  readonly alice: Person;
  /** A user of group payments-leads. */
  readonly bob: Person;
  /** A user of group sre, which the templates allow. */
  readonly carol: Person;
  /** Namespace of the release. */
  readonly system = 'drawbridge-system';
  /** Namespace of the workload and the templates. */
  readonly namespace = 'payments';

  private constructor(node: RealNode, [alice, bob, carol]: readonly [Person, Person, Person]) {
    this.node = node;
    [this.alice, this.bob, this.carol] = [alice, bob, carol];
    this.client = new Client({ plane: node, namespace: this.namespace });
  }

  /** On the shared node, where nothing may be installed yet. */
  static async bare(): Promise<NodeStage> {
    const node = await sharedNode();
    const people = [
      await Person.of(node, 'alice', ['devs']),
      await Person.of(node, 'bob', ['payments-leads']),
      await Person.of(node, 'carol', ['sre']),
    ] as const;
    return new NodeStage(node, people);
  }

  /** With all four features, and the workload and templates of `examples/`; installs what is missing. */
  static async open(): Promise<NodeStage> {
    const stage = await NodeStage.bare();
    if (!(await stage.isInstalled())) {
      await stage.install();
      await stage.enableGateway();
      await stage.enableInventory();
      await stage.enableBinding();
    }
    await stage.applyExamples();
    return stage;
  }

  async isInstalled(): Promise<boolean> {
    const { code } = await this.sh('helm status drawbridge -n drawbridge-system', { reject: false });
    return code === 0;
  }

  /** The commands of docs/tasks/install.md. The node has the image that `docker build` would build. */
  async install(): Promise<void> {
    const image = await drawbridgeImage();
    const [build, push, ...others] = commandsOf('docs/tasks/install.md');
    assert.deepEqual([build, push], [`docker build -t ${image} .`, `docker push ${image}`]);
    let output = '';
    for (const command of others) output = (await this.sh(command)).stdout;
    assert.match(output, shown('tasks/install.md', 'rolled out'));
  }

  /**
   * As docs/tasks/open-sessions-through-the-gateway.md says, with recordings and audit journals on volumes, as docs/tasks/record-sessions.md
   * and docs/tasks/keep-the-audit-journal.md say.
   */
  async enableGateway(): Promise<void> {
    await this.createVolumes();
    const [upgrade = '', wait = ''] = commandsOf('docs/tasks/open-sessions-through-the-gateway.md', 'features.gateway');
    const [keep = ''] = commandsOf('docs/tasks/keep-the-audit-journal.md', 'audit.volume');
    const values = [
      '--set gateway.recordings.volume.persistentVolumeClaim.claimName=recordings',
      /--set audit\.volume\S+/.exec(keep)?.[0],
      `--set-json 'grantable=${JSON.stringify(grantable)}'`,
    ];
    await this.sh([upgrade, ...values].join(' '));
    const { stdout } = await this.sh(`${wait} --timeout=60s`);
    assert.match(stdout, shown('tasks/open-sessions-through-the-gateway.md', 'condition met'));
    await this.rolledOut();
  }

  /** With their claims, `recordings` and `audit`. */
  async createVolumes(): Promise<void> {
    await this.node.run('mkdir', ['-p', recordings, journals]);
    await this.node.run('chown', ['65532:65532', recordings, journals]);
    await this.apply(...volume('recordings', recordings, this.system), ...volume('audit', journals, this.system));
    // A Pod with a claim that is not bound yet gets the Event FailedScheduling.
    await this.sh(
      `kubectl wait pvc/recordings pvc/audit -n ${this.system} --for=jsonpath='{.status.phase}'=Bound --timeout=60s`,
    );
  }

  /** As docs/inventory/run-the-inventory.md says. */
  async enableInventory(): Promise<void> {
    const commands = commandsOf('docs/inventory/run-the-inventory.md', 'features.inventory');
    const { code } = await this.sh('kubectl get namespace fleet', { reject: false });
    for (const command of code === 0 ? commands.slice(1) : commands) await this.sh(command);
    await this.rolledOut();
  }

  /** As docs/binding/bind-a-provider.md says, beside the other features. */
  async enableBinding(): Promise<void> {
    await this.sh(
      scriptOf('docs/binding/bind-a-provider.md', 'helm upgrade drawbridge charts/drawbridge -n drawbridge-system'),
    );
    await this.rolledOut();
  }

  /** Resolves when every replica of every feature is ready. */
  async rolledOut(): Promise<void> {
    await this.sh('kubectl rollout status deployment -n drawbridge-system --timeout=240s');
  }

  async applyExamples(): Promise<void> {
    for (const file of ['workload', 'rbac', 'templates']) await this.sh(`kubectl apply -f examples/${file}.yaml`);
    await this.sh('kubectl rollout status deployment/payments -n payments --timeout=60s');
    await this.templatesReady();
  }

  /** Resolves when every template of the namespace is ready. */
  async templatesReady(): Promise<void> {
    await this.sh(
      'kubectl wait podaccesstemplates,execaccesstemplates --all -n payments --for=jsonpath={.status.ready}=true --timeout=30s',
    );
  }

  async apply(...manifests: readonly object[]): Promise<void> {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests });
    await this.node.kubectl(['apply', '-f', '-'], { input });
  }

  /** Runs lines of a document by bash, by default in the checkout and as the administrator. `drawbridge` is the client. */
  async sh(lines: string, { reject = true, kubeconfig = this.node.adminKubeconfig, cwd = checkout } = {}) {
    const result = await tryAsReader({ plane: this.node, folder: cwd, kubeconfig }, lines);
    if (reject) assert.equal(result.code, 0, `${lines}\n${result.stderr}${result.stdout}`);
    return result;
  }

  /** The Pods of a label selector in a namespace. */
  async pods(namespace: string, selector: string): Promise<NodePod[]> {
    const { body } = await this.node.probe(
      `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(selector)}`,
    );
    return (body as { items: NodePod[] }).items;
  }

  /** Ids of the processes of each Pod of the workload, as this machine counts them. */
  async workloadProcesses(): Promise<number[][]> {
    const pods = (await this.pods(this.namespace, 'app=payments')).map(({ metadata }) => metadata.name).sort();
    return Promise.all(pods.map((name) => this.node.processesOf(this.namespace, name, 'app')));
  }

  /** What `drawbridge audit verify` or `report` prints about the journals on the volume. */
  async audit(command: 'verify' | 'report'): Promise<string> {
    const file = join(this.node.directory, 'journals.jsonl');
    await writeFile(file, await this.node.run('sh', ['-c', `cat ${journals}/*`]));
    return (await this.sh(`drawbridge audit ${command} ${file}`, { reject: false })).stdout;
  }

  /** What `drawbridge doctor` of this checkout finds. */
  doctor(): Promise<{ readonly code: number; readonly stdout: string }> {
    return this.sh('drawbridge doctor', { reject: false });
  }

  /** Creates a request and resolves when access is open. */
  async createReady(person: Person, manifest: Manifest): Promise<StoredRequest> {
    const url = accessUrl(manifest.kind, this.namespace);
    const { status, body } = await person.call('POST', url, manifest);
    assert.equal(status, 201, JSON.stringify(body));
    return this.request(manifest.kind, (body as StoredRequest).metadata.name, ({ status }) => status?.ready === true);
  }

  /** Resolves to a request as soon as the condition holds. */
  async request(
    kind: string,
    name: string,
    holds: (found: StoredRequest) => boolean,
    timeoutMs = 30_000,
  ): Promise<StoredRequest> {
    let last: StoredRequest | undefined;
    const found = await until(
      `${kind} ${name}`,
      async () => {
        const { body } = await this.node.probe(`${accessUrl(kind, this.namespace)}/${name}`);
        last = body as StoredRequest;
        return holds(last) && last;
      },
      { timeoutMs, everyMs: 10 },
    ).catch((error: Error) => {
      const messages = last?.status?.conditions?.map(({ type, message }) => `${type}: ${message}`);
      throw new Error(`${error.message}\n${messages?.join('\n')}`);
    });
    return found;
  }

  /** kubectl or the client in a real terminal, in the namespace of the workload. */
  terminal(person: Person, who: 'kubectl' | 'drawbridge', ...args: readonly string[]): Terminal {
    const program = who === 'kubectl' ? [this.node.binaries.kubectl] : [process.execPath, client];
    return this.#terminal(person.kubeconfig, [...program, '-n', this.namespace, ...args]);
  }

  /** The client in a real terminal, as the administrator. */
  administratorTerminal(...args: readonly string[]): Terminal {
    return this.#terminal(this.node.adminKubeconfig, [process.execPath, client, ...args]);
  }

  #terminal(kubeconfig: string, [program = '', ...args]: readonly string[]): Terminal {
    const PATH = `${dirname(this.node.binaries.kubectl)}:${process.env['PATH']}`;
    return new Terminal(program, args, { PATH, HOME: this.node.directory, KUBECONFIG: kubeconfig, TERM: 'xterm' });
  }

  /** Resolves to how long after `sinceMs`, epoch ms, the condition first holds. */
  async lateness(what: string, sinceMs: number, holds: () => Promise<boolean> | boolean): Promise<number> {
    const timeoutMs = sinceMs - Date.now() + 30_000;
    await until(what, async () => (await holds()) || undefined, { timeoutMs, everyMs: 10 });
    return Date.now() - sinceMs;
  }

  /** Deletes every request of the namespace, and resolves when they and their grants have gone. */
  async deleteRequests(): Promise<void> {
    await this.sh('kubectl delete podaccessrequests,execaccessrequests --all -n payments --timeout=60s');
  }
}

/** A Pod; the fields that tests read. */
export interface NodePod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly containers: readonly { readonly name: string }[] };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly message?: string;
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly restartCount: number;
      readonly ready: boolean;
    }[];
  };
}

/** A template for sessions through the gateway with the workload of `examples/`. */
export const gatewayTemplate = (name: string, session: object = {}): object => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'ExecAccessTemplate',
  metadata: { name, namespace: 'payments' },
  spec: {
    accessConfig: {
      allowedGroups: ['devs'],
      defaultDuration: '10m',
      maxDuration: '1h',
      session: { via: 'Gateway', ...session },
    },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
  },
});

/** A volume in a folder of the node, which every replica can mount. */
const volume = (name: string, path: string, namespace: string): object[] => {
  const claim = { accessModes: ['ReadWriteMany'], storageClassName: '' };
  const capacity = { storage: '1Gi' };
  return [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: { ...claim, capacity, hostPath: { path }, claimRef: { namespace, name } },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: { ...claim, volumeName: name, resources: { requests: capacity } },
    },
  ];
};
