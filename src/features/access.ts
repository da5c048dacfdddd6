import { readFileSync } from 'node:fs';
import { admissionReads, connectTargets } from '../access/admission-reads.ts';
import { admissionWork } from '../access/builders/plan-budget.ts';
import { accessControllers } from '../access/controllers.ts';
import { OwedReviews, reviewsSpec } from '../access/emergency/owed-reviews.ts';
import { withdrawalSpec } from '../access/gateway-withdrawal.ts';
import { GrantQuota } from '../access/lifecycle/grant-quota.ts';
import { policyController } from '../access/policies/controller.ts';
import { certifyingSpecs, PolicyGuard, policyRecordSpec } from '../access/policies/policy-guard.ts';
import { parseGrantable } from '../access/policy/granted-rules.ts';
import type { Violation } from '../access/policy/policy.ts';
import { notPlanned, type PlannedTemplate } from '../access/policy/template-policy.ts';
import { type AccessStores, openAccessStores } from '../access/stores/access-stores.ts';
import { gatewayViolation } from '../access/stores/gateway-view.ts';
import { TemplatePlans } from '../access/template/template-plans.ts';
import { AdmissionPlanQueue } from '../admission/plan-queue.ts';
import type { AccessReviews } from '../admission/ports.ts';
import { keyOf } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { CodedError, describe, quote } from '../kit/errors.ts';
import type { Client } from '../kube/client.ts';
import { regarding } from '../kube/event-object.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { RbacRule } from '../rbac/rule-cover.ts';
import { clock, type Feature, type Host, leadership, type OpenFeature, recorder, storesProblem } from './feature.ts';

const leaseName = 'drawbridge-access';

export const access: Feature = {
  name: 'access',
  connections: 10,
  servesHttps: true,
  readFiles({ grantable }) {
    const rules = grantable === undefined ? [] : readGrantable(grantable);
    return (host) => open(host, rules);
  },
};

/** Throws CodedError `InvalidGrantable` that names the flag and the file. */
function readGrantable(file: string): RbacRule[] {
  try {
    return parseGrantable(readFileSync(file));
  } catch (cause) {
    const message = `--grantable: ${quote(file, 256)} cannot be used: ${describe(cause)}; name a JSON file with a list of PolicyRules`;
    throw new CodedError('InvalidGrantable', message, { cause });
  }
}

function open(host: Host, grantable: readonly RbacRule[]): OpenFeature {
  const { config, cluster, metrics, log } = host;
  const { journal } = host.serving();
  const { leaseNamespace: namespace } = config;
  const stores = openAccessStores(cluster);
  const limits = { perUser: config.maxGrantsPerUser, perNamespace: config.maxGrantsPerNamespace };
  const quota = new GrantQuota({ stores, limits, clock });
  const reviewStore = cluster.watch(reviewsSpec(namespace)).store;
  const withdrawals = cluster.watch(withdrawalSpec(namespace)).store;
  // Every replica answers webhooks, so their Events use the plain client.
  const podEvents = recorder(host, 'access', cluster.client);
  const { gate, leaderOnly } = leadership(host, { namespace: config.leaseNamespace, name: leaseName });
  const client = leaderOnly(cluster.client);
  const reviews = new OwedReviews({ store: reviewStore, client, namespace, clock });
  const guard = new PolicyGuard({ client, namespace, clock, log, journal });
  const records = cluster.watch(policyRecordSpec(namespace)).store;
  let isInstalled = false;
  const certifying = certifyingSpecs(() => guard.recheck()).map((spec) => cluster.watch(spec).store);
  const requestEvents = recorder(host, 'access', client);
  const { breakGlassGroup, trustExistingTemplates, accessPods, certificates } = config;
  const planQueue = new AdmissionPlanQueue(clock);
  const reviewDeps = {
    plansFor: (address: string, { namespace }: PlannedTemplate) => {
      const runner = planQueue.runnerFor(address, namespace);
      return new TemplatePlans({ stores, runner, clock, accessPods, work: admissionWork });
    },
    stores,
    quota,
    reviews,
    grantable,
    serverNamespace: namespace,
    client: cluster.client,
    events: podEvents,
    breakGlassGroup,
  };
  const controllerDeps = {
    client,
    quota,
    reviews,
    policies: guard,
    grantable,
    serverNamespace: namespace,
    stores,
    withdrawals,
    journal,
    events: requestEvents,
    clock,
    log,
    metrics,
  };
  return {
    gate,
    controllers: [
      policyController({ guard, stores: certifying, clock, log, metrics }),
      ...accessControllers({ ...controllerDeps, trustExistingTemplates, accessPods, certificates }),
    ],
    webhookDeps: (shared) => ({ access: { ...accessReviews(reviewDeps), ...shared } }),
    readiness: {
      stores: () => storesProblem([...stores.all, reviewStore]),
      policies: () => guard.health() ?? storesProblem(certifying),
      // So in an installation, the API server admits nothing that the policies did not certify. Objects
      // of before are judged anyway, and an earlier leader may keep no record.
      installation: () => {
        isInstalled ||= [records, ...stores.requests, ...stores.templates].some((store) => hasAny(store));
        return isInstalled ? undefined : 'the leader has not yet proven that the admission policies are in force';
      },
    },
    close: { events: () => Promise.all([podEvents.close(), requestEvents.close()]) },
  };
}

const hasAny = (store: { list(): Iterable<unknown> }): boolean => !store.list()[Symbol.iterator]().next().done;

/** At admission. The leader's limit is higher, so the template only counts as not planned. */
const isTooLarge = ({ code }: Violation): boolean => code === 'PlanTooLarge';

interface AdmissionDeps {
  readonly plansFor: (address: string, template: PlannedTemplate) => TemplatePlans;
  readonly stores: AccessStores;
  readonly quota: GrantQuota;
  readonly reviews: OwedReviews;
  readonly grantable: readonly RbacRule[];
  readonly serverNamespace: string;
  readonly client: Client;
  readonly events: EventRecorder;
  readonly breakGlassGroup: string | undefined;
}

function accessReviews(deps: AdmissionDeps): AccessReviews {
  const { plansFor, stores, quota, reviews, grantable, serverNamespace, client, events, breakGlassGroup } = deps;
  return {
    ...admissionReads({ stores, client, quota, reviews, clock }),
    grantable,
    serverNamespace,
    ownViolations: async (template, address, signal) => {
      const found = await plansFor(address, template).violationsInEmptyNamespace(template, signal);
      return found !== notPlanned && found.some(isTooLarge) ? notPlanned : found;
    },
    presentPlan: async (template, address, signal) => {
      const plans = plansFor(address, template);
      const plan = await plans.planInNamespace(template, signal);
      const selectorNotes = plans.selectorNotes(template);
      if (plan === notPlanned) return { denial: notPlanned, selectorNotes };
      if (!('violation' in plan)) return { selectorNotes };
      return { denial: isTooLarge(plan.violation) ? notPlanned : plan.violation, selectorNotes };
    },
    gatewayViolation: () => gatewayViolation(stores.gateway),
    ...connectTargets({ stores, client, clock }),
    breakGlassGroup,
    recordConnect: ({ type, namespace, pod, reason, note }) => {
      // `kubectl describe` finds Events by uid, and the review has none.
      const uid = stores.pods.get(keyOf({ namespace, name: pod }))?.uid;
      events.record({
        regarding: regarding(pods, { namespace, name: pod, uid }),
        type,
        reason,
        // An own budget of Events, so that other calls do not displace that of a break-glass call.
        action: reason === 'BreakGlass' ? 'BreakGlass' : 'Connect',
        note,
      });
    },
  };
}
