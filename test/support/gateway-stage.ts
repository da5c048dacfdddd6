import { stringify } from 'yaml';
import { Helm } from '../../sandbox/chart/helm.ts';
import { GatewayProcess } from '../../sandbox/gateway-process.ts';
import { type Plane, startPlane } from '../../sandbox/plane.ts';
import type { AuditLine } from '../../sandbox/server-process.ts';
import { Terminal } from '../../sandbox/terminal.ts';
import { until } from '../../sandbox/wait.ts';
import { keySecretName } from '../../src/access/signing/key-secret.ts';
import { grantPurpose, type Signer } from '../../src/access/signing/signer.ts';
import { accessSessions } from '../../src/api/access/access-session.ts';
import type { Grant } from '../../src/api/access/grant.ts';
import { childNameOf } from '../../src/api/access/names.ts';
import { gatewayGroup, gatewayUserOf, grantProxyPath } from '../../src/api/gateway/names.ts';
import { formatTime } from '../../src/kit/clock.ts';
import { DerivedKeyPair } from '../../src/kit/ed25519.ts';
import { program } from './client.ts';
import { Person } from './person.ts';
import { testNamespace } from './plane.ts';
import { keyOf, signerOf } from './signers.ts';

const rbac = 'rbac.authorization.k8s.io';
const requests = '/apis/crds.wizardofoz.co/v1alpha1/namespaces';

/** A grant that the stage made, as its user reaches it. */
export interface StagedGrant {
  readonly request: string;
  readonly uid: string;
  /** The name of the grant in the paths of the gateway. */
  readonly name: string;
  /** The arguments of kubectl that lead through the gateway. */
  readonly via: readonly string[];
  /** When it ends, epoch ms. */
  readonly endMs: number;
}

interface GrantOptions {
  readonly lastsMs?: number;
  /** Changes the grant before it is signed. */
  readonly over?: Partial<Grant>;
  /** Changes the grant after it was signed. */
  readonly forged?: object;
  readonly signer?: Signer;
}

/**
 * A gateway on a plane of its own. No server decides there: the tests sign grants with keys of their own, so that a grant can last for
 * seconds, and its signature can be wrong.
 */
export class GatewayStage {
  readonly plane: Plane;
  readonly namespace: string;
  readonly alice: Person;
  readonly bob: Person;
  readonly signer: Signer = signerOf('ours');
  gateway: GatewayProcess;
  readonly #terminals: Terminal[] = [];
  #count = 0;

  private constructor(plane: Plane, namespace: string, people: readonly [Person, Person], gateway: GatewayProcess) {
    this.plane = plane;
    this.namespace = namespace;
    [this.alice, this.bob] = people;
    this.gateway = gateway;
  }

  /** `flags`: of the gateway, given the folder of the plane. `env`: further variables of its environment. */
  static async open(
    flags: (directory: string) => readonly string[] = () => [],
    env: Readonly<Record<string, string>> = {},
    apiserverFlags: readonly string[] = [],
  ): Promise<GatewayStage> {
    const plane = await startPlane({ apiserverFlags });
    await plane.kubectl(['apply', '-f', 'charts/drawbridge/files/crds']);
    const namespace = await testNamespace('gateway', plane);
    await plane.kubectl(['apply', '-n', namespace, '-f', '-'], { input: rights(namespace) });
    await plane.kubectl(['apply', '-f', '-'], { input: await policies(plane, namespace) });
    const people = [await Person.of(plane, 'alice', ['devs']), await Person.of(plane, 'bob', ['devs'])] as const;
    const gateway = await GatewayProcess.start(plane, { namespace, flags: flags(plane.directory), env });
    const stage = new GatewayStage(plane, namespace, people, gateway);
    await stage.#pod();
    return stage;
  }

  /** Grants alice `pods/exec` and the given rules on the pod, until `lastsMs` from now. */
  async grant({
    lastsMs = 600_000,
    over = {},
    forged = {},
    signer = this.signer,
  }: GrantOptions = {}): Promise<StagedGrant> {
    const name = `debug-${++this.#count}`;
    const { body } = await this.plane.call('POST', `${requests}/${this.namespace}/execaccessrequests`, {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessRequest',
      metadata: { name },
      spec: { templateName: 'payments-exec' },
    });
    const { uid = '' } = (body as { metadata: { uid?: string } }).metadata;
    const owner = { namespace: this.namespace, name, uid };
    const rule = (resource: string, verbs: string[]) => ({
      apiGroups: [''],
      resources: [resource],
      resourceNames: ['payments'] as [string],
      verbs,
    });
    const grant = signer.signGrant(owner, {
      template: { kind: 'ExecAccessTemplate', name: 'payments-exec', uid: 't-1', generation: 1 },
      subjects: [{ kind: 'User', name: 'alice' }],
      pod: { name: 'payments' },
      rules: [
        rule('pods', ['get', 'list', 'watch']),
        ...['exec', 'attach', 'portforward'].map((way) => rule(`pods/${way}`, ['get', 'create'])),
        rule('pods/log', ['get']),
      ],
      session: { via: 'Gateway' },
      planHash: 'c0ffee',
      expiresAt: formatTime(Date.now() + lastsMs),
      ...over,
    });
    await this.#patchStatus(name, { grant: { ...grant, ...forged } });
    const child = childNameOf({ name, uid });
    return {
      request: name,
      uid,
      name: child,
      endMs: Date.parse(grant.expiresAt),
      via: [`--server=${this.plane.server}${grantProxyPath(this.namespace, child)}`, '-n', this.namespace],
    };
  }

  async #patchStatus(request: string, status: object): Promise<void> {
    const patch = JSON.stringify({ status });
    await this.plane.kubectl([
      'patch',
      '--subresource=status',
      '--type=merge',
      '-n',
      this.namespace,
      'ear',
      request,
      '-p',
      patch,
    ]);
  }

  async revoke({ request }: StagedGrant): Promise<void> {
    const patch = '{"spec":{"revoked":true}}';
    await this.plane.kubectl(['patch', '--type=merge', '-n', this.namespace, 'ear', request, '-p', patch]);
  }

  /** Lets a group do what the ClusterRole drawbridge-session-auditor of the chart allows, in the namespace of the stage. */
  async allowViews(group: string): Promise<void> {
    const role = { apiGroup: rbac, kind: 'Role', name: 'views' };
    const rules = [
      { apiGroups: [gatewayGroup], resources: ['sessions/log', 'recordings/log'], verbs: ['get'] },
      {
        apiGroups: [accessSessions.group],
        resources: [accessSessions.plural],
        verbs: ['get', 'list', 'watch', 'delete'],
      },
    ];
    const documents = [
      { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: { name: 'views' }, rules },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata: { name: 'views' },
        roleRef: role,
        subjects: [{ apiGroup: rbac, kind: 'Group', name: group }],
      },
    ];
    const input = documents.map((document) => stringify(document)).join('---\n');
    await this.plane.kubectl(['apply', '-n', this.namespace, '-f', '-'], { input });
  }

  /** The audit line of the end of a session of the grant. The gateway may learn of the end after the client. */
  ended({ request }: StagedGrant): Promise<AuditLine> {
    const line = async (): Promise<AuditLine | undefined> =>
      (await this.gateway.audit((found) => found.verdict === 'ended' && found['request'] === request))[0];
    return until(`the audit line of the end of a session of ${request}`, line, { timeoutMs: 30_000 });
  }

  /** Waits until the gateway refuses alice a call for the grant with a message that matches. */
  async gatewaySees({ name }: StagedGrant, message: RegExp): Promise<void> {
    const refuses = async (): Promise<boolean> => {
      const { status, body } = await this.alice.call(
        'GET',
        `${grantProxyPath(this.namespace, name)}/api/v1/namespaces/${this.namespace}/pods`,
      );
      return status === 403 && message.test(JSON.stringify(body));
    };
    await until(`the gateway to refuse with ${message}`, refuses, { timeoutMs: 30_000, everyMs: 20 });
  }

  /** kubectl in a terminal. */
  terminal(person: Person, args: readonly string[]): Terminal {
    return this.#terminal(person, this.plane.binaries.kubectl, args);
  }

  /** The built client in a terminal. */
  client(person: Person, args: readonly string[]): Terminal {
    return this.#terminal(person, process.execPath, [program, '-n', this.namespace, ...args]);
  }

  #terminal(person: Person, command: string, args: readonly string[]): Terminal {
    const { directory } = this.plane;
    const terminal = new Terminal(command, args, {
      PATH: process.env['PATH'],
      HOME: directory,
      KUBECONFIG: person.kubeconfig,
      TERM: 'xterm',
    });
    this.#terminals.push(terminal);
    return terminal;
  }

  async close(): Promise<void> {
    for (const terminal of this.#terminals) terminal.kill();
    await this.gateway?.stop();
    await this.plane.stop();
  }

  async #pod(): Promise<void> {
    const pods = `/api/v1/namespaces/${this.namespace}/pods`;
    await this.plane.call('POST', pods, {
      metadata: { name: 'payments' },
      spec: { containers: [{ name: 'app', image: 'example.org/app' }] },
    });
    const isRunning = async (): Promise<boolean> => {
      const { status } = (await this.plane.probe(`${pods}/payments`)).body as { status?: { phase?: string } };
      return status?.phase === 'Running';
    };
    await until('the pod to run', isRunning, { timeoutMs: 30_000 });
  }
}

/** The chart's policies about sessions and the Leases of replicas. */
async function policies({ binaries, directory }: Plane, namespace: string): Promise<string> {
  const helm = new Helm({ program: binaries.helm, home: directory });
  const manifests = await helm.template(namespace, { features: { gateway: true } });
  return manifests
    .filter(({ metadata }) => ['drawbridge-sessions', 'drawbridge-replicas'].includes(metadata.name))
    .map((manifest) => stringify(manifest))
    .join('---\n');
}

function rights(namespace: string): string {
  const publicKey = new DerivedKeyPair(keyOf('ours'), grantPurpose).publicKey.toString('base64url');
  const documents = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: keySecretName }, data: { [publicKey]: 'current' } },
    ...gatewayRights(namespace),
    {
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata: { name: 'grants' },
      rules: [{ apiGroups: [gatewayGroup], resources: ['grants/proxy'], verbs: ['get', 'create'] }],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'grants' },
      roleRef: { apiGroup: rbac, kind: 'Role', name: 'grants' },
      subjects: [{ apiGroup: rbac, kind: 'Group', name: 'devs' }],
    },
  ];
  return documents.map((document) => stringify(document)).join('---\n');
}

/** The permissions of the gateway that serves for the server in `namespace`. */
export function gatewayRights(namespace: string): object[] {
  const user = { apiGroup: rbac, kind: 'User', name: gatewayUserOf(namespace) };
  return [
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'gateway' },
      rules: [
        { apiGroups: ['crds.wizardofoz.co'], resources: ['*'], verbs: ['list', 'watch'] },
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: [''], resources: ['pods/exec', 'pods/attach', 'pods/portforward'], verbs: ['get', 'create'] },
        { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
        { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch', 'create', 'patch'] },
        { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create'] },
        {
          apiGroups: ['access.drawbridge.dev'],
          resources: ['accesssessions'],
          verbs: ['get', 'list', 'watch', 'create', 'delete'],
        },
        {
          apiGroups: ['coordination.k8s.io'],
          resources: ['leases'],
          verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
        },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'gateway' },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'gateway' },
      subjects: [user],
    },
  ];
}
