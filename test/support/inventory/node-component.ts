import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { until } from '../../../sandbox/wait.ts';
import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { NodeStage } from '../node-stage.ts';
import { ScriptedComponent } from './scripted-component.ts';

const api = '/apis/inventory.drawbridge.dev/v1alpha1';
const component = 'cluster';
const patience = { timeoutMs: 60_000 };

interface StoredEntry {
  readonly metadata: { readonly uid: string };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly outputs?: Readonly<Record<string, unknown>>;
  };
}

/** A component of this machine that drawbridge on a node calls when an entry's region changes. */
export class NodeComponent {
  readonly #stage: NodeStage;
  readonly #namespace: string;
  readonly #served: ScriptedComponent;
  /** Names of entries whose runs take long: it answers 202, and reports later. */
  readonly slow = new Set<string>();

  private constructor(stage: NodeStage, namespace: string, served: ScriptedComponent) {
    this.#stage = stage;
    this.#namespace = namespace;
    this.#served = served;
    served.script = ({ entry: { url } }) =>
      this.slow.has(url.slice(url.lastIndexOf('/') + 1))
        ? { status: 202, body: { leaseSeconds: 600 } }
        : { outcome: 'Done' };
  }

  /** Starts and registers it. */
  static async register(stage: NodeStage, namespace: string): Promise<NodeComponent> {
    const { host } = stage.node;
    const authority = createAuthority('of components');
    const identity = issue(authority, { commonName: component, serves: [host] });
    const served = await ScriptedComponent.start(() => ({ outcome: 'Done' }), { host, identity });
    await stage.apply({
      apiVersion: 'inventory.drawbridge.dev/v1alpha1',
      kind: 'ComponentReconciler',
      metadata: { name: component },
      spec: { endpoint: { url: served.url }, caBundle: authority.certificate, reads: ['/spec/cluster/region'] },
    });
    return new NodeComponent(stage, namespace, served);
  }

  /** Creates or changes an entry; resolves to the call that follows. */
  async run(name: string, region: string): Promise<ReconcileRequest> {
    const called = this.#served.nextCall();
    const metadata = { namespace: this.#namespace, name };
    const spec = { cluster: { region } };
    await this.#stage.apply({
      apiVersion: 'inventory.drawbridge.dev/v1alpha1',
      kind: 'ClusterInventory',
      metadata,
      spec,
    });
    const { request } = await called;
    return request;
  }

  /** How often it was called for the entry. */
  async calls(name: string): Promise<number> {
    return this.#served.callsFor((await this.entry(name)).metadata.uid).length;
  }

  async entry(name: string): Promise<StoredEntry> {
    const { body } = await this.#stage.node.probe(`${api}/namespaces/${this.#namespace}/clusterinventories/${name}`);
    return body as StoredEntry;
  }

  async isReady(name: string): Promise<boolean> {
    const { status } = await this.entry(name);
    return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
  }

  async whenReady(name: string): Promise<void> {
    await until(`entry ${name} to be ready`, () => this.isReady(name), patience);
  }

  /** Resolves once drawbridge waits for the report of the run. */
  async whenAwaited(name: string): Promise<void> {
    const isAwaited = async (): Promise<boolean> => {
      const url = `${api}/namespaces/${this.#namespace}/reconcileruns/${name}.${component}`;
      return own(own((await this.#stage.node.probe(url)).body, 'spec'), 'asynchronous') === true;
    };
    await until(`the run of ${name} to be open`, isAwaited, patience);
  }

  /** From the node, which reaches Services. Resolves to the answer, followed by its status. */
  async report({ callback, auth, run }: ReconcileRequest, outcome: Outcome): Promise<string> {
    const { hostname } = new URL(callback);
    const service = 'kubectl get service drawbridge-callbacks -n drawbridge-system -o jsonpath={.spec.clusterIP}';
    const { stdout: address } = await this.#stage.sh(service);
    const headers = [`authorization: Bearer ${auth.token}`, 'content-type: application/json'];
    const args = [
      ...['--silent', '--show-error', '--insecure', '--resolve', `${hostname}:443:${address}`],
      ...headers.flatMap((header) => ['--header', header]),
      ...['--data', JSON.stringify({ run: run.id, ...outcome }), '--write-out', ' %{http_code}', callback],
    ];
    // A replica that does not lead answers 503: report again.
    const accepted = async (): Promise<string | false> => {
      const answer = await this.#stage.node.run('curl', args);
      return !answer.endsWith(' 503') && answer;
    };
    return until('an answer to the report', accepted, patience);
  }

  /** Deletes the entries and the registration. */
  async close(): Promise<void> {
    this.slow.clear();
    await this.#stage.sh(`kubectl delete clusterinventories --all -n ${this.#namespace} --timeout=60s`);
    await this.#stage.sh(`kubectl delete componentreconcilers ${component}`);
    this.#served.close();
  }
}
