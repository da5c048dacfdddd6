import assert from 'node:assert/strict';
import { accessControllers } from '../../../../src/access/controllers.ts';
import { OwedReviews, reviewsSpec } from '../../../../src/access/emergency/owed-reviews.ts';
import { withdrawalSpec } from '../../../../src/access/gateway-withdrawal.ts';
import { GrantQuota } from '../../../../src/access/lifecycle/grant-quota.ts';
import type { Certified } from '../../../../src/access/policies/policy-check.ts';
import { type Limits, noLimits } from '../../../../src/access/policy/limits.ts';
import { voteName } from '../../../../src/access/policy/vote-policy.ts';
import { openAccessStores } from '../../../../src/access/stores/access-stores.ts';
import { accessVotes, type VoteSpec } from '../../../../src/api/access/access-vote.ts';
import { execAccess, execAccessRequests } from '../../../../src/api/access/exec-access.ts';
import type { RequestSpec } from '../../../../src/api/access/kinds.ts';
import { requestLabel, revokeFinalizer } from '../../../../src/api/access/names.ts';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { RequestStatus } from '../../../../src/api/access/status.ts';
import { gatewayApiService } from '../../../../src/api/gateway/names.ts';
import type { Condition, KubeObject, ObjectMeta } from '../../../../src/api/object.ts';
import { apiServices, deployments, pods, roleBindings, roles, statefulSets } from '../../../../src/api/resources.ts';
import type { AuditRecord } from '../../../../src/audit/record.ts';
import { Manager } from '../../../../src/engine/manager.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { CodedError } from '../../../../src/kit/errors.ts';
import type { RecordedEvent } from '../../../../src/kube/event-object.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { createMetrics } from '../../../../src/observe/metrics.ts';
import type { RbacRule } from '../../../../src/rbac/rule-cover.ts';
import {
  approvals,
  execRequestManifest,
  execTemplateManifest,
  podRequestManifest,
  podTemplateManifest,
} from '../../../support/access-objects.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { MemoryCluster } from './memory-cluster.ts';

export const serverNamespace = 'drawbridge-system';
export const requestName = { namespace: 'payments', name: 'debug' };
export const templateName = { namespace: 'payments', name: 'payments-shell' };
export const peer = approvals;

/** All controllers of access on a cluster in memory, with a simulated clock. */
export class LifecycleStage {
  readonly clock = new SimulatedClock();
  readonly cluster = new MemoryCluster(this.clock);
  readonly lines: AuditRecord[] = [];
  /** While true, the journal takes no lines. */
  journalFails = false;
  readonly events: RecordedEvent[] = [];
  metrics = createMetrics();
  limits: Limits = noLimits;
  grantable: readonly RbacRule[] = [];
  certificates: 'files' | 'own' = 'files';
  /** Epoch ms: end of the last gap of the policies. 'never': within one. */
  policiesSinceMs: number | 'never' = 0;
  #stop = new AbortController();
  #run: Promise<void> = Promise.resolve();

  constructor() {
    const { cluster } = this;
    cluster.put(deployments, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'payments', name: 'payments' },
      spec: {
        selector: { matchLabels: { app: 'payments' } },
        template: {
          metadata: { labels: { app: 'payments' } },
          spec: { containers: [{ name: 'app', image: 'app:1' }] },
        },
      },
    } as KubeObject);
    cluster.put(podAccessTemplates, podTemplateManifest());
  }

  /** Starts a new process without state. */
  async start(): Promise<void> {
    this.metrics = createMetrics();
    const { clock, cluster, lines, events, metrics } = this;
    this.#stop = new AbortController();
    const manager = new Manager({ clock, log: noLog, random: () => 0 });
    const stores = openAccessStores(cluster);
    const reviews = this.reviews();
    const loops = accessControllers({
      client: cluster.client,
      quota: new GrantQuota({ stores, limits: this.limits, clock }),
      reviews,
      policies: {
        isFirstLook: false,
        assess: this.assess,
        certify: async (createdAtMs) => this.assess(createdAtMs),
        certifyVersion: async ({ createdAtMs }) => this.assess(createdAtMs),
      },
      grantable: this.grantable,
      serverNamespace: 'drawbridge-system',
      stores,
      withdrawals: cluster.watch(withdrawalSpec('drawbridge-system')).store,
      journal: {
        available: true,
        append: async (record) => {
          if (this.journalFails) throw new CodedError('AuditUnavailable', 'disk full');
          lines.push(record);
        },
      },
      events: { record: (event) => events.push(event), close: () => Promise.resolve() },
      clock,
      log: noLog,
      metrics,
      // The template of this stage has no author.
      trustExistingTemplates: true,
      accessPods: 'confined',
      certificates: this.certificates,
    });
    for (const loop of loops) manager.add(loop);
    this.#run = manager.run(this.#stop.signal);
    await this.clock.advance(10);
  }

  /** Sets the condition Available of the APIService of the gateway, as the API server would. */
  gatewayIs(status: 'True' | 'False', reason = 'Passed'): void {
    this.cluster.put(apiServices, {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: gatewayApiService },
      status: { conditions: [{ type: 'Available', status, reason, message: '' }] },
    } as KubeObject);
  }

  /** The reviews that are owed, as another process would read them. */
  reviews(): OwedReviews {
    const { clock, cluster } = this;
    const store = cluster.watch(reviewsSpec(serverNamespace)).store;
    return new OwedReviews({ store, client: cluster.client, namespace: serverNamespace, clock });
  }

  readonly assess = (createdAtMs: number): Certified => {
    if (this.policiesSinceMs === 'never') return 'gap';
    return createdAtMs > this.policiesSinceMs ? 'certified' : 'uncertified';
  };

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#run;
  }

  /** Creates a request of alice, as the webhook fills it in. */
  ask(
    spec: Readonly<Record<string, unknown>> = {},
    {
      name = requestName.name,
      groups = ['devs'],
      uid = '',
      user = 'alice',
      generated = false,
      exec = false,
    }: {
      readonly name?: string;
      readonly groups?: string[];
      readonly uid?: string;
      readonly user?: string;
      /** Whether the name was generated. */
      readonly generated?: boolean;
      /** Whether it is an ExecAccessRequest. */
      readonly exec?: boolean;
    } = {},
  ): void {
    const requester = { username: user, uid, groups, time: formatTime(this.clock.now()) };
    const manifestOf = exec ? execRequestManifest : podRequestManifest;
    const manifest = manifestOf({ duration: '10m', requester, ...spec });
    const generateName = generated ? { generateName: name.slice(0, -1) } : {};
    const metadata = { ...manifest.metadata, ...generateName, name, finalizers: [revokeFinalizer] };
    this.cluster.put(exec ? execAccessRequests : podAccessRequests, { ...manifest, metadata } as KubeObject);
  }

  /** Changes accessConfig of the template, and other fields of its spec, as an author would: its generation rises. */
  configure(accessConfig: Readonly<Record<string, unknown>>, over: Readonly<Record<string, unknown>> = {}): void {
    const template = this.cluster.find(podAccessTemplates, templateName);
    if (!template) throw new Error('the template is gone');
    const spec = template.spec as { accessConfig: object };
    const generation = (template.metadata.generation ?? 0) + 1;
    this.cluster.put(podAccessTemplates, {
      ...template,
      metadata: { ...template.metadata, generation },
      spec: { ...spec, ...over, accessConfig: { ...spec.accessConfig, ...accessConfig } },
    });
  }

  /** A vote on a request of alice, as the webhook fills it in. `over` changes the spec after that. A name stands for a person in `devs`. */
  vote(
    person: string | { readonly username: string; readonly uid: string; readonly groups?: readonly string[] },
    asked: Readonly<Partial<VoteSpec>> = {},
    over: Readonly<Record<string, unknown>> = {},
  ): string {
    const {
      username,
      uid: voterUid,
      groups = ['devs'],
    } = typeof person === 'string' ? { username: person, uid: '' } : person;
    const { name: requested } = asked.request ?? requestName;
    const request = this.cluster.find(podAccessRequests, { ...requestName, name: requested });
    const template = this.cluster.find(podAccessTemplates, templateName);
    if (!request?.metadata.uid || !template) throw new Error('there is nothing to vote on');
    const uid = request.metadata.uid;
    const { generation = 0 } = template.metadata;
    const version = {
      kind: 'PodAccessTemplate',
      name: 'payments-shell',
      uid: template.metadata.uid,
      generation,
    } as const;
    const ownerReferences = [{ apiVersion: request.apiVersion, kind: request.kind, name: request.metadata.name, uid }];
    const voter = { username, uid: voterUid, groups: [...groups] };
    return this.putVote(voter, { requestUid: uid, template: version, ...asked }, { ownerReferences }, over);
  }

  /** A vote on the request with this uid, which may be deleted. `over` changes the spec after that. */
  putVote(
    voter: { readonly username: string; readonly uid: string; readonly groups: string[] },
    { requestUid, ...asked }: Readonly<Partial<VoteSpec>> & { readonly requestUid: string },
    metadata: Partial<ObjectMeta> = {},
    over: Readonly<Record<string, unknown>> = {},
  ): string {
    const { namespace } = requestName;
    const request = { kind: 'PodAccessRequest', name: requestName.name, uid: requestUid } as const;
    const spec: VoteSpec = { request, about: 'Access', decision: 'Approve', ...asked };
    const timed = { ...voter, time: formatTime(this.clock.now()) };
    const name = voteName(requestUid, voter.username, spec);
    this.cluster.put(accessVotes, {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'AccessVote',
      metadata: { namespace, name, labels: { [requestLabel]: requestUid }, ...metadata },
      spec: { ...spec, voter: timed, ...over },
    });
    return name;
  }

  /** Sets `spec.claimed`, as alice would. */
  claim(): void {
    this.change({ claimed: true });
  }

  /** Adds an extension, as alice would. */
  extend(by: string, reason?: string): void {
    const { extensions = [] } = (this.request?.spec ?? {}) as Partial<RequestSpec>;
    this.change({ extensions: [...extensions, { by, ...(reason === undefined ? {} : { reason }) }] });
  }

  /** Changes fields of the spec of alice's request. */
  change(spec: Readonly<Partial<RequestSpec>>): void {
    const { request } = this;
    if (!request) throw new Error('the request is gone');
    const generation = (request.metadata.generation ?? 0) + 1;
    this.cluster.put(podAccessRequests, {
      ...request,
      metadata: { ...request.metadata, generation },
      spec: { ...(request.spec as object), ...spec },
    });
  }

  /** Writes fields into the status of alice's request as another client, who may write the status. */
  forge(fields: object): void {
    const { request } = this;
    if (!request) throw new Error('the request is gone');
    this.cluster.put(podAccessRequests, { ...request, status: { ...this.status, ...fields } } as KubeObject);
  }

  get request(): KubeObject | undefined {
    return this.cluster.find(podAccessRequests, requestName);
  }

  get status(): RequestStatus {
    return (this.request?.status ?? {}) as RequestStatus;
  }

  condition(type: string): Condition | undefined {
    return this.status.conditions?.find((one) => one.type === type);
  }

  /** The condition AccessApproved. */
  get approved(): string {
    const { status, reason, message } = this.condition('AccessApproved') ?? {};
    return `${status} ${reason}: ${message}`;
  }

  /** How long the grant is, in minutes. */
  get grantedMinutes(): number {
    const { startsAt = '', expiresAt = '' } = this.status.grant ?? {};
    return (Date.parse(expiresAt) - Date.parse(startsAt)) / 60_000;
  }

  /** The RoleBindings, Roles, and Pods. */
  get children(): string[] {
    return [roleBindings, roles, pods].flatMap((resource) => this.cluster.names(resource));
  }

  /** Whether a RoleBinding gives access. */
  get isOpen(): boolean {
    return this.cluster.names(roleBindings).length > 0;
  }

  /** Advances the clock. By default, by long enough for the controllers to handle what happened. */
  pass(ms = 100): Promise<void> {
    return this.clock.advance(ms);
  }

  /** `ask`, `vote`, and so on, and what the controllers do then. */
  readonly asked = this.#handled((...args: Parameters<LifecycleStage['ask']>) => this.ask(...args));
  readonly voted = this.#handled((...args: Parameters<LifecycleStage['vote']>) => this.vote(...args));
  readonly configured = this.#handled((...args: Parameters<LifecycleStage['configure']>) => this.configure(...args));
  readonly claimed = this.#handled(() => this.claim());
  readonly extended = this.#handled((...args: Parameters<LifecycleStage['extend']>) => this.extend(...args));
  readonly changed = this.#handled((...args: Parameters<LifecycleStage['change']>) => this.change(...args));

  #handled<Args extends unknown[]>(act: (...args: Args) => unknown): (...args: Args) => Promise<void> {
    return (...args) => {
      act(...args);
      return this.pass();
    };
  }

  /** Opens access of alice whose pod is ready. */
  async granted(options: Parameters<LifecycleStage['ask']>[1] = {}): Promise<void> {
    this.ask({}, options);
    await this.pass(10);
    this.podBecomesReady();
    await this.pass(10);
    assert.equal(this.status.ready, true);
    assert.equal(this.children.length, 3);
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /**
   * Lets these users hold the verb `approve` on templates, and no user any other permission. A test can change the returned set.
   */
  letApprove(...users: readonly string[]): Set<string> {
    const approvers = new Set(users);
    this.cluster.allows = ({ user, verb }) => verb === 'approve' && approvers.has(user);
    return approvers;
  }

  podBecomesReady(): void {
    this.podsAre({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] });
  }

  /** Writes the status of the pods like the kubelet. */
  podsAre(status: object): void {
    for (const pod of this.cluster.all(pods)) this.cluster.put(pods, { ...pod, status } as KubeObject);
  }

  /** Creates the StatefulSet db, and an ExecAccessTemplate for its pods. */
  putDatabase(accessConfig: object): void {
    const workload = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' };
    const template = { metadata: { labels: database.labels }, spec: { containers: [] } };
    const spec = { selector: { matchLabels: database.labels }, template };
    this.cluster.put(statefulSets, { ...workload, metadata: database.name, spec });
    this.cluster.put(
      execAccess.template.resource,
      execTemplateManifest({
        accessConfig: { allowedGroups: ['devs'], ...accessConfig },
        controllerTargetRef: workload,
      }),
    );
  }

  /** Writes the pod db-0 of that StatefulSet. */
  putDatabasePod(phase: string): void {
    const { name, labels } = database;
    const { uid = '' } = this.cluster.find(statefulSets, name)?.metadata ?? {};
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid, controller: true }];
    const metadata = { ...name, name: 'db-0', labels, ownerReferences };
    this.cluster.put(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec: {}, status: { phase } });
  }

  /** The audit lines as `event verdict`, for example `grant granted`. */
  get auditVerdicts(): string[] {
    return this.lines.map(({ event, verdict }) => `${event} ${verdict}`);
  }
}

const database = { name: { namespace: 'payments', name: 'db' }, labels: { app: 'db' } };
