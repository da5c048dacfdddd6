import { readFileSync } from 'node:fs';
import { admissionReads, connectTargets } from '../access/admission-reads.ts';
import { accessControllers } from '../access/controllers.ts';
import { GrantQuota } from '../access/lifecycle/grant-quota.ts';
import { parseGrantable } from '../access/policy/granted-rules.ts';
import { Signer } from '../access/signing/signer.ts';
import { signingKeys } from '../access/signing/signing-keys.ts';
import { type AccessStores, openAccessStores } from '../access/stores/access-stores.ts';
import type { AccessReviews } from '../admission/ports.ts';
import { keyOf } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { sleep } from '../kit/clock.ts';
import { CodedError, describe, quote } from '../kit/errors.ts';
import type { Client } from '../kube/client.ts';
import { regarding } from '../kube/event-object.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { RbacRule } from '../rbac/rule-cover.ts';
import { clock, type Feature, type Host, leadership, type OpenFeature, recorder, storesProblem } from './feature.ts';

const leaseName = 'drawbridge-access';
/** How long the controllers wait for the first attempt to read the signing keys, milliseconds. */
const keysWaitMs = 1000;

/** The access feature: templates and requests of both kinds. */
export const access: Feature = {
  name: 'access',
  connections: 10,
  answersCalls: true,
  prepare({ grantable }) {
    const rules = grantable === undefined ? [] : readGrantable(grantable);
    return (host) => open(host, rules);
  },
};

/** Reads the file of `--grantable`. Throws a CodedError (`InvalidGrantable`) that names the flag and the file. */
function readGrantable(file: string): RbacRule[] {
  try {
    return parseGrantable(readFileSync(file));
  } catch (cause) {
    const message = `--grantable: ${quote(file, 256)} cannot be used: ${describe(cause)}; name a JSON file with a list of PolicyRules`;
    throw new CodedError('InvalidGrantable', message, { cause });
  }
}

function open(host: Host, grantable: readonly RbacRule[]): OpenFeature {
  const { config, cluster, metrics, log, signal } = host;
  const { journal, certificateControllers } = host.serving();
  const { leaseNamespace: namespace, adoptSigningKeys: adopt } = config;
  const keys = signingKeys({ client: cluster.client, namespace, adopt, clock, log });
  const keysTried = keys.start(signal);
  const stores = openAccessStores(cluster);
  const signer = new Signer(keys);
  const limits = { perUser: config.maxGrantsPerUser, perNamespace: config.maxGrantsPerNamespace };
  const quota = new GrantQuota({ stores, limits, clock });
  // Every replica answers webhooks, so their Events use the plain client; Events of controllers use the leader-only client.
  const podEvents = recorder(host, 'access', cluster.client);
  const { gate, leaderOnly } = leadership(host, { namespace: config.leaseNamespace, name: leaseName });
  const client = leaderOnly(cluster.client);
  const requestEvents = recorder(host, 'access', client);
  const { breakGlassGroup, trustExistingTemplates, accessPods } = config;
  const reviewDeps = { stores, signer, quota, grantable, client: cluster.client, events: podEvents, breakGlassGroup };
  const controllerDeps = {
    client,
    signer,
    quota,
    grantable,
    stores,
    journal,
    events: requestEvents,
    clock,
    log,
    metrics,
  };
  return {
    gate,
    controllers: [
      ...accessControllers({ ...controllerDeps, trustExistingTemplates, accessPods }),
      // Last, because revoking access on time must not wait for it.
      ...certificateControllers(client),
    ],
    webhooks: (reviews) => ({ access: { ...accessReviews(reviewDeps), ...reviews } }),
    readiness: { stores: () => storesProblem(stores.all), 'signing-keys': () => keys.problem() },
    // Without keys, every open grant would fail its first reconcile. Revoking needs no keys, so controllers wait at most 1 s for them.
    ready: () => Promise.race([keysTried, sleep(clock, keysWaitMs, signal).catch(() => undefined)]),
    close: { events: () => Promise.all([podEvents.close(), requestEvents.close()]) },
  };
}

interface AdmissionDeps {
  readonly stores: AccessStores;
  readonly signer: Signer;
  readonly quota: GrantQuota;
  readonly grantable: readonly RbacRule[];
  readonly client: Client;
  readonly events: EventRecorder;
  readonly breakGlassGroup: string | undefined;
}

function accessReviews(deps: AdmissionDeps): AccessReviews {
  const { stores, signer, quota, grantable, client, events, breakGlassGroup } = deps;
  return {
    ...admissionReads(stores, client, quota),
    grantable,
    signRequester: (attestation) => signer.signRequester(attestation),
    signAuthor: (attestation) => signer.signAuthor(attestation),
    ...connectTargets({ stores, client, signer, clock }),
    breakGlassGroup,
    recordConnect: ({ type, namespace, pod, reason, note }) => {
      // kubectl describe looks for Events by uid, and the review has none.
      const uid = stores.pods.get(keyOf({ namespace, name: pod }))?.uid;
      events.record({
        regarding: regarding(pods, { namespace, name: pod, uid }),
        type,
        reason,
        action: 'Connect',
        note,
      });
    },
  };
}
