import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { PlaneClient } from '../../../sandbox/plane-client.ts';
import { type ServerOptions, ServerProcess } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { Api, type ApiObject } from './api.ts';

export const accessGroup = 'crds.wizardofoz.co/v1alpha1';
const voteGroup = 'access.drawbridge.dev/v1alpha1';

const container = {
  name: 'app',
  image: 'busybox:1.37',
  command: ['sh', '-c', 'sleep 86400'],
  resources: { requests: { cpu: '50m', memory: '32Mi' }, limits: { memory: '64Mi' } },
};
const podTemplate = { metadata: { labels: { app: 'payments' } }, spec: { containers: [container] } };

interface TemplateParts {
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly accessConfig?: object;
}

const instant = { podAnnotations: {} };
const quick = { podAnnotations: { 'sandbox/ready-after': '200ms' } };
const slow = { podAnnotations: { 'sandbox/ready-after': '3s' } };
const approvals = { all: [{ name: 'peer', groups: ['devs'] }] };
/** Templates, by how long their pods take to become Ready, and whether a second person must approve the request. */
const templates = {
  instant,
  quick,
  slow,
  'instant-approved': { ...instant, accessConfig: { approvals } },
  'quick-approved': { ...quick, accessConfig: { approvals } },
} as const satisfies Readonly<Record<string, TemplateParts>>;
export type Template = keyof typeof templates;

const peer = 'bench-peer';

interface RoleBinding {
  readonly metadata: { readonly name: string };
  readonly roleRef: object;
  readonly subjects?: readonly { readonly kind: string; readonly name: string }[];
}

/** A namespace with a workload and templates, the server under test, an administrator, a user whom the templates allow, and an approver. */
export class BenchStage {
  readonly plane: PlaneClient;
  readonly server: ServerProcess;
  readonly namespace: string;
  readonly admin: Api;
  readonly alice: Api;
  /** The approver. */
  readonly carol: Api;
  /** A user with the permissions of the server. Unlike for the administrator, the API server checks what each Role would grant. */
  readonly peer: Api;

  private constructor(plane: PlaneClient, server: ServerProcess, namespace: string) {
    this.plane = plane;
    this.server = server;
    this.namespace = namespace;
    this.admin = new Api(plane, 'bench-admin', ['system:masters']);
    this.alice = new Api(plane, 'alice', ['devs']);
    this.carol = new Api(plane, 'carol', ['devs']);
    this.peer = new Api(plane, peer, ['system:authenticated']);
  }

  static async open(plane: PlaneClient, options: ServerOptions = {}): Promise<BenchStage> {
    const server = await ServerProcess.start(plane, options);
    const stage = new BenchStage(plane, server, `bench-${randomBytes(3).toString('hex')}`);
    await stage.#createFixtures();
    await stage.#bindPeer();
    await Promise.all([stage.admin, stage.alice, stage.carol, stage.peer].map((api) => api.warm()));
    return stage;
  }

  /** Collection path of a kind. */
  path(plural: keyof typeof collections): string {
    return `${collections[plural]}/namespaces/${this.namespace}/${plural}`;
  }

  /** Creates a PodAccessRequest as alice. */
  request(name: string, template: Template, duration: string): Promise<ApiObject> {
    return this.alice.call('POST', this.path('podaccessrequests'), {
      apiVersion: accessGroup,
      kind: 'PodAccessRequest',
      metadata: { name },
      spec: { templateName: template, duration },
    }) as Promise<ApiObject>;
  }

  /** Creates a vote as carol, who approves the request. */
  approve(name: string): Promise<unknown> {
    return this.carol.call('POST', this.path('accessvotes'), {
      apiVersion: voteGroup,
      kind: 'AccessVote',
      metadata: { generateName: 'vote-' },
      spec: { request: { kind: 'PodAccessRequest', name }, decision: 'Approve' },
    });
  }

  /** The pod that the bare loops create, like the pod that the server would create from the workload. */
  pod(name: string): unknown {
    const metadata = { name, labels: { 'bench/floor': 'true' } };
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: { ...podTemplate.spec, automountServiceAccountToken: false },
    };
  }

  /** Revokes every request and removes the objects of the bare loops. Resolves once all are gone. */
  async clear(): Promise<void> {
    await this.admin.call('DELETE', this.path('podaccessrequests'));
    await this.admin.call('DELETE', this.path('pods'), {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      gracePeriodSeconds: 0,
    });
    for (const plural of ['roles', 'rolebindings'] as const) {
      await this.admin.call('DELETE', `${this.path(plural)}?labelSelector=bench/floor`);
    }
    for (const plural of ['podaccessrequests', 'accessvotes', 'pods', 'rolebindings'] as const) {
      const selector = plural === 'rolebindings' ? '?labelSelector=!bench/stays' : '';
      await until(
        `no ${plural} to be left`,
        async () => {
          const { items } = (await this.admin.call('GET', `${this.path(plural)}${selector}`)) as { items: unknown[] };
          return items.length === 0;
        },
        { timeoutMs: 60_000, everyMs: 100 },
      );
    }
  }

  /** Processor time of the server so far, milliseconds; Linux only, elsewhere NaN. */
  async cpuMs(): Promise<number> {
    return cpuMs(this.server.pid);
  }

  /** The server's calls since a mark of the audit log: without watches, lists and Events, which serve many requests at once. */
  calls(since: number): { readonly calls: number; readonly writes: number } {
    const counted = this.plane.auditLog
      .calls({ user: this.server.installation.serverUser, since })
      .filter(({ verb, resource }) => verb !== 'watch' && verb !== 'list' && resource !== 'events');
    return { calls: counted.length, writes: counted.filter(({ verb }) => verb !== 'get').length };
  }

  async close(): Promise<void> {
    await this.clear();
    await this.server.stop();
    await this.admin.call('DELETE', `/api/v1/namespaces/${this.namespace}`);
    await Promise.all([this.admin, this.alice, this.carol, this.peer].map((api) => api.close()));
  }

  /** Grants the peer the permissions of the server. Policies that match the server's user name do not apply to the peer. */
  async #bindPeer(): Promise<void> {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
    const selector = 'labelSelector=app.kubernetes.io/name%3Ddrawbridge';
    const { items } = (await this.admin.call('GET', `${path}?${selector}`)) as { items: RoleBinding[] };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: peer }];
    for (const { metadata, roleRef, subjects: bound } of items) {
      if (!bound?.some(({ kind, name }) => kind === 'ServiceAccount' && name === 'drawbridge')) continue;
      const name = `${peer}-${metadata.name}`;
      await this.admin.call('POST', path, { metadata: { name }, roleRef, subjects }, true);
    }
  }

  async #createFixtures(): Promise<void> {
    const { admin, namespace } = this;
    await admin.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
    const exists = async (): Promise<boolean> =>
      !('code' in ((await admin.call('GET', account, undefined, true)) as object));
    await until('the default ServiceAccount', exists, { timeoutMs: 10_000 });
    await admin.call('POST', this.path('roles'), {
      metadata: { name: 'request-access' },
      rules: [
        {
          apiGroups: ['crds.wizardofoz.co'],
          resources: ['podaccessrequests'],
          verbs: ['create', 'get', 'list', 'watch', 'delete'],
        },
        { apiGroups: ['crds.wizardofoz.co'], resources: ['podaccesstemplates'], verbs: ['approve'] },
        { apiGroups: ['access.drawbridge.dev'], resources: ['accessvotes'], verbs: ['create'] },
      ],
    });
    await admin.call('POST', this.path('rolebindings'), {
      metadata: { name: 'request-access', labels: { 'bench/stays': 'true' } },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'request-access' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'devs' }],
    });
    await admin.call('POST', this.path('deployments'), {
      metadata: { name: 'payments' },
      // Without pods, because no figure includes them.
      spec: { replicas: 0, selector: { matchLabels: podTemplate.metadata.labels }, template: podTemplate },
    });
    await Promise.all(Object.entries(templates).map(([name, parts]) => this.#template(name, parts)));
  }

  async #template(name: string, { podAnnotations, accessConfig }: TemplateParts): Promise<void> {
    await this.admin.call('POST', this.path('podaccesstemplates'), {
      apiVersion: accessGroup,
      kind: 'PodAccessTemplate',
      metadata: { name },
      spec: {
        accessConfig: { allowedGroups: ['devs'], ...accessConfig },
        controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
        controllerTargetMutationConfig: { podAnnotations },
      },
    });
    const ready = async (): Promise<boolean> =>
      ((await this.admin.call('GET', `${this.path('podaccesstemplates')}/${name}`)) as ApiObject).status?.ready ===
      true;
    await until(`template ${name} to be ready`, ready, { timeoutMs: 10_000 });
  }
}

const collections = {
  podaccessrequests: `/apis/${accessGroup}`,
  podaccesstemplates: `/apis/${accessGroup}`,
  accessvotes: `/apis/${voteGroup}`,
  pods: '/api/v1',
  roles: '/apis/rbac.authorization.k8s.io/v1',
  rolebindings: '/apis/rbac.authorization.k8s.io/v1',
  deployments: '/apis/apps/v1',
};

/** Processor time of a process so far, milliseconds, in steps of 10; Linux only, elsewhere NaN. */
export async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name in parentheses may contain any character; user and system time are the 12th and 13th field after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
