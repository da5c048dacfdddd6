import { stringify } from 'yaml';
import { Helm } from '../../sandbox/chart/helm.ts';
import { GatewayProcess } from '../../sandbox/gateway-process.ts';
import { type Plane, startPlane } from '../../sandbox/plane.ts';
import type { AuditLine } from '../../sandbox/server-process.ts';
import { Terminal } from '../../sandbox/terminal.ts';
import { until } from '../../sandbox/wait.ts';
import { accessSessions } from '../../src/api/access/access-session.ts';
import type { Grant } from '../../src/api/access/grant.ts';
import { childNameOf } from '../../src/api/access/names.ts';
import { gatewayApiService, gatewayGroup, gatewayUserOf, grantProxyPath } from '../../src/api/gateway/names.ts';
import { formatTime } from '../../src/kit/clock.ts';
import { program } from './client.ts';
import { Person } from './person.ts';

/** Of the server, and of the pod of the grants. */
const namespace = 'gateway';
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
  readonly over?: Partial<Grant>;
}

/** The plane of all stages without flags of the API server, which has no server of access. */
let shared: Promise<Plane> | undefined;
/** Numbers the requests of all stages of a plane. */
let count = 0;

/** Ends the plane that stages share, if there is one. */
export async function stopGatewayPlane(): Promise<void> {
  const plane = await shared?.catch(() => undefined);
  shared = undefined;
  await plane?.stop();
}

/**
 * A gateway without a server that decides: the tests write grants, so that one can last for seconds. One stage at a time.
 */
export class GatewayStage {
  readonly plane: Plane;
  readonly namespace = namespace;
  readonly alice: Person;
  readonly bob: Person;
  gateway: GatewayProcess;
  readonly #terminals: Terminal[] = [];
  readonly #ownsPlane: boolean;

  private constructor(
    plane: Plane,
    people: readonly [Person, Person],
    gateway: GatewayProcess,
    { ownsPlane }: { ownsPlane: boolean },
  ) {
    this.plane = plane;
    [this.alice, this.bob] = people;
    this.gateway = gateway;
    this.#ownsPlane = ownsPlane;
  }

  /** `flags`: of the gateway, given the folder of the plane. `apiserverFlags`: of a plane of its own. */
  static async open(
    flags: (directory: string) => readonly string[] = () => [],
    apiserverFlags?: readonly string[],
  ): Promise<GatewayStage> {
    const ownsPlane = apiserverFlags !== undefined;
    if (!ownsPlane) shared ??= startPlaneOfGateway([]);
    const plane = await (ownsPlane ? startPlaneOfGateway(apiserverFlags) : (shared as Promise<Plane>));
    const people = [await Person.of(plane, 'alice', ['devs']), await Person.of(plane, 'bob', ['devs'])] as const;
    const gateway = await GatewayProcess.start(plane, { namespace, flags: flags(plane.directory) });
    return new GatewayStage(plane, people, gateway, { ownsPlane });
  }

  /** Grants alice `pods/exec` and the given rules on the pod, until `lastsMs` from now. */
  async grant({ lastsMs = 600_000, over = {} }: GrantOptions = {}): Promise<StagedGrant> {
    const name = `debug-${++count}`;
    const { body } = await this.plane.call('POST', `${requests}/${this.namespace}/execaccessrequests`, {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessRequest',
      metadata: { name },
      spec: { templateName: 'payments-exec' },
    });
    const { uid = '' } = (body as { metadata: { uid?: string } }).metadata;
    const rule = (resource: string, verbs: string[]) => ({
      apiGroups: [''],
      resources: [resource],
      resourceNames: ['payments'] as [string],
      verbs,
    });
    const grant: Grant = {
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
    };
    await this.#patchStatus(name, { grant });
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
    if (this.#ownsPlane) return this.plane.stop();
    await this.plane.call('DELETE', `${requests}/${namespace}/execaccessrequests`);
    await this.plane.kubectl(['delete', 'apiservice', gatewayApiService]);
    await this.plane.kubectl(['delete', 'roles,rolebindings', 'views', '-n', namespace, '--ignore-not-found']);
  }
}

/** A plane with the permissions and the Pod of a stage. */
async function startPlaneOfGateway(apiserverFlags: readonly string[]): Promise<Plane> {
  const plane = await startPlane({ apiserverFlags });
  await plane.kubectl(['create', 'namespace', namespace]);
  const policies = await policiesOfTheChart(plane);
  await plane.kubectl(['apply', '-n', namespace, '-f', 'charts/drawbridge/files/crds', '-f', '-'], {
    input: `${rights()}\n---\n${policies}`,
  });
  const pod = { metadata: { name: 'payments' }, spec: { containers: [{ name: 'app', image: 'example.org/app' }] } };
  const create = async (): Promise<boolean> =>
    // The ServiceAccount of a Pod comes after its namespace.
    (await plane.call('POST', `/api/v1/namespaces/${namespace}/pods`, pod)).status === 201;
  await until('the pod to be created', create, { timeoutMs: 30_000 });
  const isRunning = async (): Promise<boolean> => {
    const { body } = await plane.probe(`/api/v1/namespaces/${namespace}/pods/payments`);
    return (body as { status?: { phase?: string } }).status?.phase === 'Running';
  };
  await until('the pod to run', isRunning, { timeoutMs: 30_000 });
  return plane;
}

/** The chart's policies about sessions and the Leases of replicas. */
async function policiesOfTheChart({ binaries, directory }: Plane): Promise<string> {
  const helm = new Helm({ program: binaries.helm, home: directory });
  const manifests = await helm.template(namespace, { features: { gateway: true } });
  return manifests
    .filter(({ metadata }) => ['drawbridge-sessions', 'drawbridge-replicas'].includes(metadata.name))
    .map((manifest) => stringify(manifest))
    .join('---\n');
}

function rights(): string {
  const documents = [
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
