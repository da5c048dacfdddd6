import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import fastJsonPatch, { type Operation } from 'fast-json-patch';
import supertest from 'supertest';
import type { OverdueReview } from '../../../src/access/policy/emergency-policy.ts';
import type { Extendable } from '../../../src/access/policy/extension-choice.ts';
import { confinedTo } from '../../../src/access/policy/granted-rules.ts';
import type { LimitUse } from '../../../src/access/policy/limits.ts';
import type { Violation } from '../../../src/access/policy/policy.ts';
import type { TemplateState } from '../../../src/access/policy/request-policy.ts';
import type { Permission } from '../../../src/access/policy/template-permissions.ts';
import type { notPlanned } from '../../../src/access/policy/template-policy.ts';
import type { VotedRequest } from '../../../src/access/policy/vote-policy.ts';
import { createAdmissionApp } from '../../../src/admission/app.ts';
import { FairQueue } from '../../../src/admission/fair-queue.ts';
import type {
  AdmissionPorts,
  ConnectTarget,
  Outcome,
  PodConnectEvent,
  PresentPlan,
} from '../../../src/admission/ports.ts';
import type { Ended } from '../../../src/api/access/ended.ts';
import type { TemplateSpec } from '../../../src/api/access/kinds.ts';
import type { AccessConfig } from '../../../src/api/access/template-spec.ts';
import type { ReconcileRun } from '../../../src/api/inventory/reconcile-run.ts';
import type { AuditRecord } from '../../../src/audit/record.ts';
import type { RegistrationPaths } from '../../../src/inventory/policy/registration-rules.ts';
import type { RegisteredComponent } from '../../../src/inventory/policy/setting-warnings.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { CodedError } from '../../../src/kit/errors.ts';
import type { JsonPointer } from '../../../src/kit/json-pointer.ts';
import { noLog } from '../../../src/observe/log.ts';
import { accessConfig } from '../../support/access-objects.ts';
import { allWaysIn } from '../../support/pod-entries.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

export const paths = {
  attestPod: '/mutate-crds-wizardofoz-co-v1alpha1-podaccessrequest',
  validatePod: '/validate-crds-wizardofoz-co-v1alpha1-podaccessrequest',
  attestExec: '/mutate-crds-wizardofoz-co-v1alpha1-execaccessrequest',
  validateExec: '/validate-crds-wizardofoz-co-v1alpha1-execaccessrequest',
  attestPodTemplate: '/mutate-crds-wizardofoz-co-v1alpha1-podaccesstemplate',
  podTemplate: '/validate-crds-wizardofoz-co-v1alpha1-podaccesstemplate',
  execTemplate: '/validate-crds-wizardofoz-co-v1alpha1-execaccesstemplate',
  watchPod: '/watch-v1-pod',
  guardPod: '/enforce-v1-pod',
  guardGateway: '/gateway-v1-pod',
  attestEntry: '/mutate-inventory-drawbridge-dev-v1alpha1-clusterinventory',
  fence: '/fence-inventory-drawbridge-dev-v1alpha1-clusterinventory',
  size: '/limit-inventory-drawbridge-dev-v1alpha1-clusterinventory',
  registration: '/validate-inventory-drawbridge-dev-v1alpha1-componentreconciler',
} as const;

export const alice = { username: 'alice', uid: 'u-1', groups: ['devs', 'system:authenticated'] };
export const requester = { ...alice, time: '2026-11-21T09:00:00Z' };

export const accessPod = 'debug-1a2b3c4d-access';

/** The rules of a grant that permits each call that enters the pod. */
export const entryRules = confinedTo(accessPod, [allWaysIn]);

type ConnectGrant = ConnectTarget['grants'][number];

/** The grant of request debug to alice, which permits each call that enters the pod. */
export const entryGrant = (over: Partial<ConnectGrant> = {}): ConnectGrant => ({
  request: 'debug',
  template: 'shell',
  subjects: [{ kind: 'User', name: 'alice' }],
  rules: entryRules,
  ...over,
});

/** An access pod with these grants. */
export const enteredPod = (...grants: ConnectGrant[]): ConnectTarget => ({ uid: 'p-1', isAccessPod: true, grants });

/** A pod of a workload with these grants. */
export const workloadPod = (...grants: ConnectGrant[]): ConnectTarget => ({ uid: 'p-1', isAccessPod: false, grants });

/** Ports that record their calls, and a journal that a test can switch off. */
export class World {
  readonly clock = new SimulatedClock();
  readonly lines: AuditRecord[] = [];
  readonly connectEvents: PodConnectEvent[] = [];
  readonly outcomes: Outcome[] = [];
  /** Exhausted resources, one per rejected call. */
  readonly overloads: string[] = [];
  readonly asked: string[] = [];
  /** The access of the request that an update changes. */
  access: Extendable | undefined;
  ended: Ended | undefined;
  /** The request that votes name. */
  request: VotedRequest = { found: false };
  overdueReview: OverdueReview | undefined;
  /** Whether callers hold the verb approve. */
  approves = true;
  journalWorks = true;
  holds = false;
  limits: readonly LimitUse[] = [];
  /** Why no request can ever use a template with this spec. */
  ownViolations: (spec: TemplateSpec) => readonly Violation[] | typeof notPlanned = () => [];
  /** What would deny a request through any template now. */
  presentPlan: PresentPlan = {};
  gatewayViolation: Violation | undefined;
  /** Permissions that no caller has. */
  lacks: (right: Permission) => boolean = () => false;
  template: () => Promise<TemplateState> = () => Promise.resolve(readyTemplate());

  /** When the vote that a review creates was created before, epoch ms. */
  votedAtMs: number | undefined;
  /** The pod that the call connects to. */
  pod: ConnectTarget | undefined;

  readonly ports: { -readonly [P in keyof AdmissionPorts]: AdmissionPorts[P] } = {
    templateState: (kind, namespace, name) => {
      this.asked.push(`${kind} ${namespace}/${name}`);
      return this.template();
    },
    alreadyHolds: (caller, namespace) => {
      this.asked.push(`holds ${caller.username} ${namespace}`);
      return Promise.resolve(this.holds);
    },
    grantable: [],
    serverNamespace: 'drawbridge-system',
    ownViolations: (template) => Promise.resolve(this.ownViolations(template.spec)),
    gatewayViolation: () => this.gatewayViolation,
    presentPlan: () => Promise.resolve(this.presentPlan),
    limitUses: () => this.limits,
    missingPermissions: (_caller, _namespace, rights) => Promise.resolve(rights.filter((right) => this.lacks(right))),
    overdueReview: () => this.overdueReview,
    votedRequest: ({ kind, name }, namespace) => {
      this.asked.push(`${kind} ${namespace}/${name}`);
      return Promise.resolve(this.request);
    },
    votedAtMs: () => this.votedAtMs,
    mayApprove: (caller, template) => {
      this.asked.push(`approve ${caller.username} ${template.kind} ${template.namespace}/${template.name}`);
      return Promise.resolve(this.approves);
    },
    openAccess: () => this.access,
    endOf: () => this.ended,
    cachedConnectTarget: () => this.pod,
    connectTarget: () => Promise.resolve(this.pod),
    gatewayTarget: () =>
      Promise.resolve(this.pod && { ...this.pod, grants: this.pod.grants.filter(({ viaGateway }) => viaGateway) }),
    breakGlassGroup: 'firefighters',
    recordConnect: (event) => this.connectEvents.push(event),
    recordOutcome: (outcome) => this.outcomes.push(outcome),
    recordOverload: (wanted) => this.overloads.push(wanted),
    journal: {
      available: true,
      append: (record) => {
        if (!this.journalWorks) return Promise.reject(new CodedError('AuditUnavailable', 'disk full'));
        this.lines.push(record);
        return Promise.resolve();
      },
    },
    clock: this.clock,
    log: noLog,
  };

  /** Run records of components. */
  run: ReconcileRun | undefined;
  writes: readonly JsonPointer[] | undefined = ['/status/outputs/network'];
  registrations: readonly RegistrationPaths[] = [];
  registered: readonly RegisteredComponent[] = [];
  entries: readonly string[] = [];
  readonly deniedWrites: string[] = [];

  /** Lets requests name a ready template with these fields of `accessConfig`. */
  configure(config: Partial<AccessConfig>): void {
    this.template = () => Promise.resolve(templateWith(config));
  }

  /** Lets requests name a template that does not exist. */
  dropTemplate(): void {
    this.template = () => Promise.resolve({ found: false });
  }

  readonly app: RequestListener = createAdmissionApp(
    {
      access: this.ports,
      inventory: {
        ...this.ports,
        latestRun: ({ namespace, uid }, component) => {
          this.asked.push(`run ${namespace} ${uid} ${component}`);
          return Promise.resolve(this.run);
        },
        writesOf: () => Promise.resolve(this.writes),
        registrations: () => Promise.resolve(this.registrations),
        registered: () => this.registered,
        entriesOf: (component) => Promise.resolve(component === 'network' ? this.entries : []),
        recordDeniedWrite: (code) => this.deniedWrites.push(code),
      },
    },
    this.ports,
    // The queue pauses in real time.
    { queue: new FairQueue({ clock: systemClock }) },
  );

  /** Posts a review and returns `response` of the answer. */
  async review(path: string, request: Record<string, unknown>): Promise<ReviewResponse> {
    const body = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
    const answer = await supertest(this.app).post(path).send(body).expect(200);
    return answer.body.response;
  }
}

export interface ReviewResponse {
  uid: string;
  allowed: boolean;
  status?: { code: number; reason: string; message: string };
  patchType?: string;
  patch?: string;
  warnings?: string[];
  auditAnnotations?: Record<string, string>;
}

/** A ready template with these fields of `accessConfig`. */
export function templateWith(config: Partial<AccessConfig>): Extract<TemplateState, { found: true }> {
  const template = readyTemplate();
  return { ...template, spec: { ...template.spec, accessConfig: { ...template.spec.accessConfig, ...config } } };
}

export function readyTemplate(
  changes: Partial<Extract<TemplateState, { found: true }>> = {},
): Extract<TemplateState, { found: true }> {
  return {
    found: true,
    uid: 't-1',
    generation: 1,
    ready: true,
    observedGeneration: 1,
    spec: {
      accessConfig: { ...accessConfig, maxDuration: '2h' },
      controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
    },
    ...changes,
  };
}

export function accessRequest(
  spec: Record<string, unknown> = {},
  metadata: Record<string, unknown> = {},
  kind = 'PodAccessRequest',
): Record<string, unknown> {
  return {
    apiVersion: 'crds.wizardofoz.co/v1alpha1',
    kind,
    metadata: { name: 'req', namespace: 'payments', ...metadata },
    spec: { templateName: 'payments-shell', ...spec },
  };
}

/** `request` of a review, as kube-apiserver sends it. */
export function reviewOf(
  plural: string,
  operation: string,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  const gvr = { group: groups[plural] ?? 'crds.wizardofoz.co', version: 'v1alpha1', resource: plural };
  const kind = { group: gvr.group, version: gvr.version, kind: kinds[plural] ?? plural };
  return {
    uid: '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11',
    kind,
    resource: gvr,
    requestKind: kind,
    requestResource: gvr,
    name: 'req',
    namespace: 'payments',
    operation,
    userInfo: alice,
    object: null,
    oldObject: null,
    dryRun: false,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    ...fields,
  };
}

const kinds: Record<string, string> = {
  podaccessrequests: 'PodAccessRequest',
  execaccessrequests: 'ExecAccessRequest',
  podaccesstemplates: 'PodAccessTemplate',
  execaccesstemplates: 'ExecAccessTemplate',
  clusterinventories: 'ClusterInventory',
  componentreconcilers: 'ComponentReconciler',
  accessvotes: 'AccessVote',
};

const groups: Record<string, string> = {
  clusterinventories: 'inventory.drawbridge.dev',
  componentreconcilers: 'inventory.drawbridge.dev',
  accessvotes: 'access.drawbridge.dev',
};

const optionKinds = {
  exec: 'PodExecOptions',
  attach: 'PodAttachOptions',
  portforward: 'PodPortForwardOptions',
  proxy: 'PodProxyOptions',
} as const;

/** The review of `kubectl exec`, `attach`, `port-forward`, or a proxy call. */
export function connectReview(subResource: keyof typeof optionKinds, fields: Record<string, unknown> = {}) {
  const gvr = { group: '', version: 'v1', resource: 'pods' };
  const kind = { group: '', version: 'v1', kind: optionKinds[subResource] };
  return {
    ...reviewOf('pods', 'CONNECT'),
    kind,
    resource: gvr,
    requestKind: kind,
    requestResource: gvr,
    subResource,
    requestSubResource: subResource,
    name: 'web-0',
    object: {
      kind: kind.kind,
      apiVersion: 'v1',
      stdin: true,
      stdout: true,
      tty: true,
      container: 'app',
      command: ['sh', '-c', 'echo hunter2'],
    },
    ...fields,
  };
}

/** The review of `kubectl debug`. */
export function debugReview(fields: Record<string, unknown> = {}) {
  const metadata = { name: 'web-0', namespace: 'payments', uid: 'p-1' };
  const spec = { containers: [{ name: 'app', image: 'web' }] };
  const old = { name: 'earlier', image: 'busybox' };
  const added = { name: 'debugger', image: 'busybox', stdin: true, tty: true, command: ['echo', 'hunter2'] };
  return {
    ...connectReview('exec'),
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'UPDATE',
    subResource: 'ephemeralcontainers',
    requestSubResource: 'ephemeralcontainers',
    oldObject: { metadata, spec: { ...spec, ephemeralContainers: [old] } },
    object: { metadata, spec: { ...spec, ephemeralContainers: [old, added] } },
    ...fields,
  };
}

/** The answer, which must allow the request. */
export async function allowed(answering: Promise<ReviewResponse>): Promise<ReviewResponse> {
  const answer = await answering;
  assert.equal(answer.allowed, true, answer.status?.message);
  return answer;
}

/** The object as the patch of the answer leaves it. */
export function patched(object: unknown, response: ReviewResponse): Record<string, unknown> {
  return fastJsonPatch.applyPatch(structuredClone(object), patchOf(response) as Operation[], true)
    .newDocument as Record<string, unknown>;
}

/** The patch of an answer, decoded. */
export function patchOf(response: ReviewResponse): { op: string; path: string; value?: unknown }[] {
  return response.patch === undefined ? [] : JSON.parse(Buffer.from(response.patch, 'base64').toString());
}
