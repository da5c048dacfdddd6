import { accessVotes } from '../api/access/access-vote.ts';
import { accesses } from '../api/access/kinds.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../api/object.ts';
import { leases, mutatingWebhookConfigurations, validatingWebhookConfigurations } from '../api/resources.ts';
import { parseTime } from '../kit/clock.ts';
import { listIn, own, strings } from '../kit/json-value.ts';
import { findObject } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import type { Check } from './doctor-check.ts';
import { openGrants } from './doctor-grants.ts';
import { policies } from './doctor-policies.ts';

/** The API server sets it on each Namespace: its name. */
const namespaceLabel = 'kubernetes.io/metadata.name';

const requests = accesses.map(({ request }) => request.resource.plural);

/** Of access; the server has webhooks for each. */
const accessKinds = [
  ...accesses.flatMap(({ request, template }) => [request.resource, template.resource]),
  accessVotes,
];

const kinds: Check = {
  name: 'CRDs',
  ok: 'all kinds of access are served',
  async faults({ cluster, namespace }) {
    const missing: string[] = [];
    for (const resource of accessKinds) {
      try {
        await cluster.client.list(resource, { namespace, limit: 1 });
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 404) throw error;
        missing.push(resource.kind);
      }
    }
    if (missing.length === 0) return [];
    return [`CRDs not served: ${missing.join(', ')}; install them: kubectl apply -f charts/drawbridge/files/crds`];
  },
};

/** The expected failurePolicy, by plural of the resource (`drawbridge-<plural>`) and webhook. */
type FailurePolicies = Readonly<Record<string, Readonly<Record<string, 'Fail' | 'Ignore'>>>>;
/** `Ignore` only for deletions of requests and for the audit of connects to Pods. */
export const expectedWebhooks: Readonly<Record<'mutating' | 'validating', FailurePolicies>> = {
  mutating: Object.fromEntries(
    accessKinds.map(({ plural, kind }) => [plural, { [`m${kind.toLowerCase()}.kb.io`]: 'Fail' }]),
  ),
  validating: {
    ...Object.fromEntries(
      accessKinds.map(({ plural, kind }) => {
        const name = `v${kind.toLowerCase()}.kb.io`;
        return [plural, { [name]: 'Fail', ...(requests.includes(plural) ? { [`delete.${name}`]: 'Ignore' } : {}) }];
      }),
    ),
    pods: { 'vpod.kb.io': 'Ignore', 'enforce.vpod.kb.io': 'Fail', 'gateway.vpod.kb.io': 'Fail' },
  },
};

const webhooks: Check = {
  name: 'webhooks',
  ok: 'all are registered, have a caBundle, and have the failurePolicy of the chart or a stricter one',
  async faults({ cluster }) {
    const faults: string[] = [];
    const lists: readonly (readonly [Resource, FailurePolicies])[] = [
      [mutatingWebhookConfigurations, expectedWebhooks.mutating],
      [validatingWebhookConfigurations, expectedWebhooks.validating],
    ];
    for (const [resource, expected] of lists) {
      for (const [plural, policies] of Object.entries(expected)) {
        const name = `drawbridge-${plural}`;
        const object = await findObject(cluster.client, resource, { name }, {});
        const problems = object ? webhookProblems(object, policies) : ['does not exist; install it with the chart'];
        faults.push(...problems.map((problem) => `${resource.kind} ${name} ${problem}`));
      }
    }
    return faults;
  },
};

/** Each completes a sentence that begins with kind and name. */
export function webhookProblems(configuration: KubeObject, expected: FailurePolicies[string]): string[] {
  const webhooksByName = new Map(listIn(configuration, 'webhooks').map((webhook) => [own(webhook, 'name'), webhook]));
  const problems = Object.entries(expected).flatMap(([name, policy]) => {
    const webhook = webhooksByName.get(name);
    if (webhook === undefined) return [`has no webhook ${name}; run helm upgrade`];
    const actual = String(own(webhook, 'failurePolicy') ?? 'Fail');
    // `Fail` in place of `Ignore` is no problem: it is stricter.
    return actual === 'Fail' || actual === policy
      ? []
      : [
          `has failurePolicy ${actual} for webhook ${name}, so the API server admits every call while the server is down; set it to Fail, or run helm upgrade`,
        ];
  });
  const withoutBundle = [...webhooksByName].find(
    ([, webhook]) => String(own(own(webhook, 'clientConfig'), 'caBundle') ?? '') === '',
  );
  if (!withoutBundle) return problems;
  const problem = `has no caBundle for webhook ${String(withoutBundle[0])}, so the API server cannot verify the server`;
  return [...problems, `${problem}; check certificates.mode, and read the log of the server`];
}

const reachable: Check = {
  name: 'webhooks answer',
  ok: 'a webhook denied the dry run, as expected',
  async faults({ cluster, namespace }) {
    const { resource } = accesses[0].request;
    const name = `drawbridge-${resource.plural}`;
    const configuration = await findObject(cluster.client, validatingWebhookConfigurations, { name }, {});
    const metadata = { name: 'drawbridge-doctor', namespace: selectedNamespace(configuration) ?? namespace };
    const probe = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata,
      spec: { templateName: 'drawbridge-doctor' },
    };
    try {
      await cluster.client.create(resource, probe, { dryRun: true });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (/admission webhook "[mv]podaccessrequest\.kb\.io" denied the request: /.test(error.message)) return [];
      if (!error.message.includes('failed calling webhook')) throw error;
      return [
        `${error.message}; check that Pods of the server are ready, that the API server reaches its Service, and that the caBundle belongs to its certificate`,
      ];
    }
    return [
      'the API server accepted a dry-run request for a template that does not exist, so it did not call the webhooks; correct what the check "webhooks" reports',
    ];
  },
};

/** First of the chart value `namespaces`; undefined if the webhooks serve all namespaces. */
function selectedNamespace(configuration: KubeObject | undefined): string | undefined {
  const [webhook] = listIn(configuration, 'webhooks');
  const expressions = listIn(own(webhook, 'namespaceSelector'), 'matchExpressions');
  return strings(
    own(
      expressions.find(
        (expression) => own(expression, 'key') === namespaceLabel && own(expression, 'operator') === 'In',
      ),
      'values',
    ),
  )[0];
}

const leader: Check = {
  name: 'leader',
  ok: 'a replica leads',
  async faults({ cluster }, { serverNamespace, clock }) {
    const name = 'drawbridge-access';
    const lease = await findObject(cluster.client, leases, { namespace: serverNamespace, name }, {});
    if (!lease)
      return [
        `Lease ${serverNamespace}/${name} does not exist; name the namespace of the server with -n, or check that the server runs there, without --leader-elect=false`,
      ];
    const holder = String(own(lease.spec, 'holderIdentity') ?? '');
    if (holder === '')
      return ['no replica is the leader, so access does not open or close; check the Pods of the server'];
    const ageMs = clock.now() - (parseTime(String(own(lease.spec, 'renewTime') ?? '')) ?? 0);
    // After twice the Lease duration, a healthy standby replica would have taken over.
    const limitMs = 2 * 1000 * Number(own(lease.spec, 'leaseDurationSeconds') ?? 15);
    if (ageMs <= limitMs) return [];
    return [
      `${holder} last renewed Lease ${serverNamespace}/${name} ${Math.round(ageMs / 1000)} s ago; at most ${limitMs / 1000} s is expected; check that this Pod runs, and read its log`,
    ];
  },
};

/** Between the API server's clock and this one, which computes `--at` and remaining times. */
const MAX_SKEW_MS = 5000;
const clocks: Check = {
  name: 'clocks',
  ok: 'this clock and that of the API server agree',
  async faults(connection) {
    await connection.cluster.client.raw('/version');
    const aheadMs = connection.serverAheadMs();
    if (aheadMs === undefined) throw new Error('the API server sends no Date header');
    const skewMs = Math.abs(aheadMs);
    if (skewMs <= MAX_SKEW_MS) return [];
    return [
      `this clock and the clock of the API server differ by ${Math.round(skewMs / 1000)} s; at most ${MAX_SKEW_MS / 1000} s is allowed; synchronize both with NTP`,
    ];
  },
};

/** Whether drawbridge works, in the order of the output. */
export const installationChecks: readonly Check[] = [kinds, webhooks, reachable, policies, leader, clocks, openGrants];
