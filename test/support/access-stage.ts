import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments, stringify } from 'yaml';
import type { ApiAnswer } from '../../sandbox/api-call.ts';
import { install } from '../../sandbox/installation.ts';
import type { Plane } from '../../sandbox/plane.ts';
import { type AuditLine, type ServerOptions, ServerProcess } from '../../sandbox/server-process.ts';
import { until } from '../../sandbox/wait.ts';
import { notPlanned } from '../../src/access/policy/template-policy.ts';
import { requestLabel } from '../../src/api/access/names.ts';
import { formatTime } from '../../src/kit/clock.ts';
import {
  accessUrl,
  type Child,
  childrenOf,
  execRequest,
  type Manifest,
  type StoredRequest,
} from './access-requests.ts';
import { Person } from './person.ts';
import { sharedPlane, testNamespace } from './plane.ts';
import { allWaysIn } from './pod-entries.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
// The mutating ones last, because `webhooksAre` checks those.
const webhookConfigurations = 'validatingwebhookconfigurations,mutatingwebhookconfigurations';

/** Whether `AccessStage.runMarkerGrant` created an object with that name. */
export const isMarker = (name: string): boolean => name.startsWith('marker-');

/** Calls of the server without those for the grant of one `AccessStage.runMarkerGrant`, which include a read of the pod's ReplicaSet. */
export function withoutMarker<Call extends { readonly name: string; readonly resource: string }>(
  calls: readonly Call[],
): Call[] {
  const read = calls.findLastIndex(({ resource }) => resource === 'replicasets');
  return calls.filter(({ name }, index) => index !== read && !isMarker(name));
}

const admissionPolicies = 'validatingadmissionpolicybindings,validatingadmissionpolicies';

export interface AccessStageOptions extends ServerOptions {
  /** Default: the shared plane. */
  readonly on?: Plane;
  /** Whether to start a new server, for tests of its counters. Default false. */
  readonly fresh?: boolean;
  /** Default: a new name. */
  readonly namespace?: string | undefined;
}

/** The administrator of a plane, as the author of a template that no webhook has seen. */
export const administrator = (): object => ({
  username: 'sandbox-admin',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  time: formatTime(Date.now()),
});

/** By plane, the server of an earlier stage that still runs, is installed, and has no options of its own. */
const idleServers = new Map<Plane, ServerProcess>();

/** Stops the server of an earlier stage that still runs on a plane, if there is one. */
export async function stopIdleServer(plane: Plane): Promise<void> {
  const server = idleServers.get(plane);
  idleServers.delete(plane);
  if (server?.running) assert.equal(await server.stop(), 0, 'the server ends with exit code 0');
}

/** Stops every server of a stage of this test run that still runs. */
export async function stopIdleServers(): Promise<void> {
  await Promise.all([...idleServers.keys()].map((plane) => stopIdleServer(plane)));
}

/**
 * The environment of access tests: the built server on the shared plane, a namespace with the objects of `examples/`, and users.
 * One stage at a time, because webhook configurations are cluster-wide: `open` in `before`, `close` in `after`. A stage without
 * options reuses the server of the previous stage, if it still runs.
 */
export class AccessStage {
  readonly plane: Plane;
  readonly namespace: string;
  /** Alice and carol are in group devs: they may create requests, and the templates allow them. */
  readonly alice: Person;
  readonly carol: Person;
  /** Bob is in group qa: he may create requests, but no template allows him. */
  readonly bob: Person;
  readonly #servers: ServerProcess[] = [];
  /** Number of audit lines that the first server wrote before this stage. */
  #earlierLines = 0;
  /** The parts of the installation that exist now. */
  #installed = { webhooks: true, policies: true };
  /** Whether the last server has no options of its own. */
  #hasNoOptions = true;
  #auditMark: number;
  #onOwnPlane = false;

  private constructor(plane: Plane, namespace: string, [alice, carol, bob]: [Person, Person, Person]) {
    this.plane = plane;
    this.namespace = namespace;
    this.alice = alice;
    this.carol = carol;
    this.bob = bob;
    this.#auditMark = plane.auditLog.mark();
  }

  static async open({ on, fresh = false, namespace: name, ...options }: AccessStageOptions = {}): Promise<AccessStage> {
    const plane = on ?? (await sharedPlane());
    const namespace = await testNamespace('access', plane, name);
    const people = [
      Person.of(plane, 'alice', ['devs']),
      Person.of(plane, 'carol', ['devs']),
      Person.of(plane, 'bob', ['qa']),
    ] as const;
    const stage = new AccessStage(plane, namespace, await Promise.all(people));
    stage.#onOwnPlane = on !== undefined;
    const idle = idleServers.get(plane);
    if (idle?.running && !fresh && Object.keys(options).length === 0) await stage.#reuse(idle);
    else {
      await stopIdleServer(plane);
      await stage.start(options);
      // On a plane with templates of other tests and without a record, nothing opens for 40 s.
      const { healthPort } = stage.server;
      const areInForce = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).ok;
      await until('the policies to be in force', areInForce, { timeoutMs: 60_000, everyMs: 50 });
    }
    await stage.applyFiles('examples/workload.yaml', 'examples/rbac.yaml', 'examples/templates.yaml');
    const apiGroup = 'rbac.authorization.k8s.io';
    await plane.call('POST', `/apis/${apiGroup}/v1/namespaces/${namespace}/rolebindings`, {
      metadata: { name: 'qa' },
      roleRef: { apiGroup, kind: 'Role', name: 'request-access' },
      subjects: [{ apiGroup, kind: 'Group', name: 'qa' }],
    });
    await stage.#workloadAvailable('payments');
    await stage.templateReady('PodAccessTemplate', 'payments-shell');
    await stage.templateReady('ExecAccessTemplate', 'payments-exec');
    return stage;
  }

  /** The current server, or the last one. */
  get server(): ServerProcess {
    const server = this.#servers.at(-1);
    if (!server) throw new Error('no server has been started on this stage');
    return server;
  }

  async start(options: ServerOptions = {}): Promise<void> {
    this.#servers.push(await ServerProcess.start(this.plane, options));
    const { installation, ...own } = options;
    if (installation === undefined) this.#installed = { webhooks: true, policies: true };
    this.#hasNoOptions = Object.keys(own).length === 0;
  }

  async #workloadAvailable(name: string): Promise<void> {
    const url = `/apis/apps/v1/namespaces/${this.namespace}/deployments/${name}`;
    const isAvailable = async (): Promise<boolean> => {
      const { spec, status } = (await this.plane.probe(url)).body as {
        spec?: { replicas: number };
        status?: { availableReplicas?: number };
      };
      return spec !== undefined && status?.availableReplicas === spec.replicas;
    };
    await until(`Deployment ${name} to be available`, isAvailable, { timeoutMs: 30_000 });
  }

  async #reuse(server: ServerProcess): Promise<void> {
    this.#earlierLines = (await server.audit()).length;
    this.#servers.push(server);
  }

  /** Stops the server gracefully; its webhooks stay registered. */
  async stop(): Promise<void> {
    if (this.server.running) assert.equal(await this.server.stop(), 0, 'the server ends with exit code 0');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start({ installation: this.server.installation });
  }

  /** Registers the webhooks again, for the current server. */
  async restoreWebhooks(): Promise<void> {
    await install(this.plane, this.server.installation.port);
    this.#installed = { webhooks: true, policies: true };
    await this.#webhooksAre('in force');
  }

  /** Removes drawbridge's webhooks and policies. Only on a plane of the test: nothing opens then, and until 40 s after `restoreWebhooks`. */
  async removeWebhooks(): Promise<void> {
    await this.removeWebhooksOnly();
    await this.#removePolicies();
  }

  async removeWebhooksOnly(): Promise<void> {
    if (!this.#installed.webhooks) return;
    this.#installed.webhooks = false;
    await this.plane.kubectl(['delete', webhookConfigurations, '-l', 'app.kubernetes.io/name=drawbridge']);
    await this.#webhooksAre('gone');
  }

  /**
   * Waits until the API server, which lags, observes added or removed webhooks, by a template whose author they set and then deny. The server
   * may be down.
   */
  async #webhooksAre(wanted: 'in force' | 'gone'): Promise<void> {
    const kind = 'PodAccessTemplate';
    const spec = {
      accessConfig: { allowedGroups: ['system:masters'] },
      controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
    };
    const forged = { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind, metadata: { name: 'forged' }, spec };
    const observed = async (): Promise<boolean> => {
      const { body } = await this.create(this.plane, forged, '?dryRun=All');
      const isDenied = /admission webhook|calling webhook/.test(JSON.stringify(body));
      const hasAuthor = (body as Partial<StoredRequest>).spec?.['author'] !== undefined;
      return wanted === 'in force' ? isDenied : !isDenied && !hasAuthor;
    };
    await until(`the webhooks to be ${wanted}`, observed, { timeoutMs: 30_000 });
  }

  async #removePolicies(): Promise<void> {
    if (!this.#installed.policies) return;
    this.#installed.policies = false;
    const ours = ['-l', 'app.kubernetes.io/name=drawbridge'];
    // Deletes the binding of drawbridge-children last, because `policiesAre` checks that policy, and the API server observes deletions in order.
    const others = '--field-selector=metadata.name!=drawbridge-children';
    await this.plane.kubectl(['delete', 'validatingadmissionpolicybindings', ...ours, others]);
    await this.plane.kubectl(['delete', admissionPolicies, ...ours]);
    await this.policiesAre('gone');
  }

  /** Waits until the API server, which lags by about a second, observes added or removed policies. */
  async policiesAre(wanted: 'in force' | 'gone'): Promise<void> {
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${this.namespace}/roles?dryRun=All`;
    const forged = { metadata: { name: 'forged', labels: { [requestLabel]: 'forged' } } };
    const expected = wanted === 'gone' ? 201 : 403;
    const observed = async (): Promise<boolean> => (await this.plane.call('POST', roles, forged)).status === expected;
    await until(`the policies to be ${wanted}`, observed, { timeoutMs: 30_000, everyMs: 50 });
  }

  /** Leaves the server to the next stage, or stops it; the next stage installs its own. Fails if the API server ever denied it a permission. */
  async close(): Promise<void> {
    idleServers.delete(this.plane);
    try {
      if (this.server.running) await this.#endRequests();
      if (await this.#isAsInstalled()) idleServers.set(this.plane, this.server);
    } finally {
      if (!idleServers.has(this.plane)) await this.stop();
    }
    const calls = this.plane.auditLog.calls({ user: this.server.installation.serverUser, since: this.#auditMark });
    const forbidden = calls
      // Quotas and policies reject dry runs by 403, too. They need the same permissions as other creations.
      .filter(({ uri }) => !uri.includes('dryRun=All'))
      // The API server refuses to create objects in a namespace of an earlier test that is being deleted.
      .filter(({ code, namespace }) => code === 403 && (namespace === '' || namespace === this.namespace))
      .map(({ verb, uri }) => `${verb} ${uri}`);
    assert.deepEqual(forbidden, [], 'the shipped ClusterRole covers every call of the server');
    await this.plane.call('DELETE', `/api/v1/namespaces/${this.namespace}`);
  }

  /** Excludes the calls until now from the check in `close`, because a test made them in the server's name. */
  ignoreEarlierCalls(): void {
    this.#auditMark = this.plane.auditLog.mark();
  }

  /** Whether the next stage can reuse the server. */
  async #isAsInstalled(): Promise<boolean> {
    const { webhooks, policies } = this.#installed;
    if (!this.server.running || !webhooks || !policies || !this.#hasNoOptions || this.#onOwnPlane) return false;
    await this.policiesAre('in force');
    return true;
  }

  /** Ends all requests. Without a server, their finalizer would block the namespace, and the next server would have to end them. */
  async #endRequests(): Promise<void> {
    const urls = ['PodAccessRequest', 'ExecAccessRequest'].map((kind) => this.urlOf(kind));
    await Promise.all(urls.map((url) => this.plane.call('DELETE', url)));
    const none = async (): Promise<boolean> => {
      const lists = await Promise.all(urls.map(async (url) => (await this.plane.probe(url)).body));
      const left = lists.flatMap((list) => (list as { items: StoredRequest[] }).items);
      return left.length === 0;
    };
    await until('all requests to be gone', none, { timeoutMs: 30_000, everyMs: 200 });
  }

  /** Runs kubectl as the administrator, in the stage's namespace; resolves to its output. */
  async kubectl(...args: string[]): Promise<string> {
    return (await this.plane.kubectl(['-n', this.namespace, ...args])).stdout;
  }

  /** Applies manifests into the stage's namespace. */
  async applyFiles(...files: string[]): Promise<string> {
    const texts = await Promise.all(files.map((file) => readFile(`${root}${file}`, 'utf8')));
    const manifests = texts
      .flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest))
      .filter(({ kind }) => kind !== 'Namespace');
    return this.apply(...manifests);
  }

  async apply(...manifests: Manifest[]): Promise<string> {
    const { namespace } = this;
    const placed = manifests.map((manifest) => ({ ...manifest, metadata: { ...manifest.metadata, namespace } }));
    const input = placed.map((manifest) => stringify(manifest)).join('---\n');
    return (await this.plane.kubectl(['apply', '-f', '-'], { input })).stdout;
  }

  /** Grants a user the ClusterRole `edit` in the stage's namespace, and all calls that enter its pods. Resolves once they are in force. */
  async allowPodEntry(user: string): Promise<void> {
    await this.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'enter-pods' },
      rules: [allWaysIn],
    });
    await this.kubectl('create', 'rolebinding', `edit-${user}`, '--clusterrole=edit', `--user=${user}`);
    await this.kubectl('create', 'rolebinding', `enter-pods-${user}`, '--role=enter-pods', `--user=${user}`);
    await this.allowed(user, { verb: 'create', resource: 'pods', subresource: 'exec' });
    await this.allowed(user, { verb: 'patch', resource: 'pods', subresource: 'ephemeralcontainers' });
  }

  /** Resolves once the API server, whose RBAC caches lag behind Roles and RoleBindings, allows a user a call in the stage's namespace. */
  async allowed(user: string, call: Readonly<Record<string, string>>): Promise<void> {
    const spec = { user, resourceAttributes: { namespace: this.namespace, ...call } };
    const isAllowed = async (): Promise<boolean> => {
      const { body } = await this.plane.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec });
      return (body as { status?: { allowed?: boolean } }).status?.allowed === true;
    };
    await until(`${user} to be allowed ${Object.values(call).join(' ')}`, isAllowed, { timeoutMs: 30_000 });
  }

  urlOf(kind: string, name = ''): string {
    return accessUrl(kind, this.namespace, name);
  }

  /** Reads any object of the access group; undefined if it does not exist. */
  async read(kind: string, name: string): Promise<StoredRequest | undefined> {
    const { status, body } = await this.plane.probe(this.urlOf(kind, name));
    return status === 200 ? (body as StoredRequest) : undefined;
  }

  /** Creates a request as `person`; `manifest` needs a kind, a name and a spec. */
  create(person: Pick<Person, 'call'>, manifest: Manifest, query = ''): Promise<ApiAnswer> {
    return person.call('POST', `${this.urlOf(manifest.kind)}${query}`, manifest);
  }

  /**
   * Resolves once a dry run of `create` is answered with that HTTP status, with its message. The webhooks decide by a cache, which may lag
   * behind the status of a template that a test has read.
   */
  async answered(status: number, person: Pick<Person, 'call'>, manifest: Manifest): Promise<string> {
    let last: ApiAnswer | undefined;
    const isAnswered = async (): Promise<boolean> => {
      last = await this.create(person, manifest, '?dryRun=All');
      return last.status === status;
    };
    await until(`${manifest.kind} ${manifest.metadata.name} to be answered with ${status}`, isAnswered, {
      timeoutMs: 30_000,
    }).catch((error: Error) => assert.fail(`${error.message}: ${JSON.stringify(last)}`));
    return (last?.body as { message?: string } | undefined)?.message ?? '';
  }

  votesUrl(name = ''): string {
    return `/apis/access.drawbridge.dev/v1alpha1/namespaces/${this.namespace}/accessvotes${name && `/${name}`}`;
  }

  /** Creates a vote about a request as `person`. By default, it approves the access. */
  vote(
    person: Pick<Person, 'call'>,
    { kind, metadata: { name } }: Pick<Manifest, 'kind' | 'metadata'>,
    spec: object = {},
    query = '',
  ): Promise<ApiAnswer> {
    return person.call('POST', `${this.votesUrl()}${query}`, {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'AccessVote',
      metadata: { generateName: 'vote-' },
      spec: { request: { kind, name }, decision: 'Approve', ...spec },
    });
  }

  /** Adds to `accessConfig` of a template. Resolves once the template is ready. */
  async configure(kind: string, name: string, accessConfig: object): Promise<void> {
    const { status, body } = await this.plane.call('PATCH', this.urlOf(kind, name), { spec: { accessConfig } });
    assert.equal(status, 200, JSON.stringify(body));
    await this.templateReady(kind, name);
  }

  async createOk(person: Pick<Person, 'call'>, manifest: Manifest): Promise<StoredRequest> {
    const { status, body } = await this.create(person, manifest);
    assert.equal(status, 201, JSON.stringify(body));
    return body as StoredRequest;
  }

  /** Resolves with the request once `matches` returns true; rejects after 30 s with its last state. */
  async requestUntil(
    what: string,
    { kind, metadata: { name } }: Pick<StoredRequest, 'kind' | 'metadata'>,
    matches: (request: StoredRequest) => boolean,
  ): Promise<StoredRequest> {
    let last: StoredRequest | undefined;
    const matching = async (): Promise<StoredRequest | false> => {
      last = await this.read(kind, name);
      return last !== undefined && matches(last) && last;
    };
    try {
      return await until(`${kind} ${name} ${what}`, matching, { timeoutMs: 30_000, everyMs: 25 });
    } catch (error) {
      throw new Error(`${(error as Error).message}; it is ${stringify(last ?? 'gone')}${await this.server.log()}`);
    }
  }

  ready(request: Pick<StoredRequest, 'kind' | 'metadata'>): Promise<StoredRequest> {
    return this.requestUntil('to be ready', request, ({ status }) => status?.ready === true);
  }

  async createReady(person: Pick<Person, 'call'>, manifest: Manifest): Promise<StoredRequest> {
    return this.ready(await this.createOk(person, manifest));
  }

  /** Resolves once the template is ready, or not ready for another reason than that its judgement is missing. */
  templateReady(kind: string, name: string, ready = true): Promise<StoredRequest> {
    return this.#templateUntil(`to be ready: ${ready}`, kind, name, ({ status }) => {
      const isJudged = (status?.conditions ?? []).every(({ reason }) => reason !== notPlanned);
      return isJudged && (status?.ready ?? false) === ready;
    });
  }

  /** Resolves once all conditions are of the current generation. */
  templateObserved(kind: string, name: string): Promise<StoredRequest> {
    return this.#templateUntil('to be observed', kind, name, () => true);
  }

  #templateUntil(
    what: string,
    kind: string,
    name: string,
    matches: (template: StoredRequest) => boolean,
  ): Promise<StoredRequest> {
    return this.requestUntil(what, { kind, metadata: { name, uid: '' } }, (template) => {
      const { status, metadata } = template;
      const conditions = status?.conditions ?? [];
      const observed =
        conditions.length > 0 && conditions.every((one) => one.observedGeneration === metadata.generation);
      return observed && matches(template);
    });
  }

  /** Resolves once the request and its objects are deleted, with the time (epoch ms) when the test observed that. */
  async gone({ kind, metadata }: StoredRequest, timeoutMs = 30_000): Promise<number> {
    await until(
      `${kind} ${metadata.name} and its children to be gone`,
      async () =>
        (await this.read(kind, metadata.name)) === undefined && (await this.children(metadata.uid)).length === 0,
      { timeoutMs, everyMs: 25 },
    );
    return Date.now();
  }

  /**
   * Resolves once every object of the request is deleted, and the request is deleted or being deleted, with the time (epoch ms) when the
   * test observed that.
   */
  async closed({ kind, metadata }: StoredRequest): Promise<number> {
    const isOver = async (): Promise<boolean> => {
      const left = await this.read(kind, metadata.name);
      const wanted = left?.metadata.uid === metadata.uid && left.metadata.deletionTimestamp === undefined;
      return !wanted && (await this.children(metadata.uid)).length === 0;
    };
    await until(`${kind} ${metadata.name} to be closed`, isOver, { timeoutMs: 30_000, everyMs: 25 });
    return Date.now();
  }

  /**
   * Opens a grant of one second and waits until it has ended. By then, the server has done all earlier work, so a test can assert that
   * nothing happened. `isMarker` recognizes the names of the grant's objects.
   */
  async runMarkerGrant(): Promise<void> {
    const marker = execRequest(`marker-${randomBytes(4).toString('hex')}`, { duration: '1s' });
    await this.closed(await this.createOk(this.alice, marker));
  }

  /** `Pod NAME`, `Role NAME`, `RoleBinding NAME` of the request with that uid. */
  children(uid: string): Promise<Child[]> {
    return childrenOf(this.plane, this.namespace, uid);
  }

  /** The audit lines of every server of this stage, oldest first. */
  async audit(matches: (line: AuditLine) => boolean): Promise<AuditLine[]> {
    const lines = await Promise.all(this.#servers.map((server) => server.audit()));
    return lines.flat().slice(this.#earlierLines).filter(matches);
  }

  /** Resolves with the first audit line about the end of access by a request of that name. */
  endOf(request: string): Promise<AuditLine> {
    return this.auditLine(
      `the end of ${request}`,
      ({ event, what }) => event === 'revocation' && what.name === request,
    );
  }

  /** Resolves once the user may not exec into the pod, by default within a second. */
  async shutTo(person: Person, pod: string, timeoutMs = 1000): Promise<void> {
    const isShut = async (): Promise<boolean> => !(await person.mayExec(this.namespace, pod));
    await until(`${pod} to be shut to ${person.name}`, isShut, { timeoutMs, everyMs: 10 });
  }

  /** Resolves with the first audit line that matches. */
  auditLine(what: string, matches: (line: AuditLine) => boolean): Promise<AuditLine> {
    return until(`an audit line: ${what}`, async () => (await this.audit(matches))[0], {
      timeoutMs: 30_000,
      everyMs: 25,
    });
  }
}
