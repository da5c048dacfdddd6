import { readFileSync } from 'node:fs';
import { admissionReads, enteredPods } from '../access/admission-reads.ts';
import type { AccessDeps } from '../access/controllers.ts';
import { GrantTally } from '../access/life/grant-tally.ts';
import { parseGrantable } from '../access/policy/granted-rules.ts';
import { Signer } from '../access/signing/signer.ts';
import { type AccessStores, openAccessStores } from '../access/stores/access-stores.ts';
import type { AccessReviews } from '../admission/ports.ts';
import { keyOf } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import type { CertificateDeps } from '../certificates/controllers.ts';
import type { Config } from '../config.ts';
import type { RbacRule } from '../grants/rule-cover.ts';
import { sleep } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import { regarding } from '../kube/event-object.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { clock, type Half, type Host, leadership, recorder, storesProblem } from './host.ts';
import type { Serving } from './serving.ts';

const lease = 'drawbridge-access';
/** How long the controllers wait for the first attempt to read the signing keys, milliseconds. */
const keysWaitMs = 1000;

export interface AccessHalf extends Half {
  readonly loops: AccessDeps;
  readonly reviews: AccessReviews;
  /** Absent when the certificate comes from files. */
  readonly certificates: CertificateDeps | undefined;
  /** Resolves when the loops may start. */
  ready(): Promise<void>;
}

/** A file is read at once, because a person who named the wrong one waits for an answer. Throws a CodedError that says which. */
export function readGrantable({ grantable }: Config): readonly RbacRule[] {
  return grantable === undefined ? [] : parseGrantable(readFileSync(grantable));
}

/** Opens the stores. */
export function openAccess(
  host: Host,
  { own, journal, keys, keysTried }: Serving,
  grantable: readonly RbacRule[],
  signal: AbortSignal,
): AccessHalf {
  const { config, cluster, health, metrics, log } = host;
  const stores = openAccessStores(cluster);
  const signer = new Signer(keys);
  const limits = { perUser: config.maxGrantsPerUser, perNamespace: config.maxGrantsPerNamespace };
  const tally = new GrantTally({ stores, limits, clock });
  // Every replica answers webhooks; what the controllers tell goes through the leader's client.
  const podEvents = recorder(host, 'access', cluster.client);

  health.ready('stores', () => storesProblem(stores.all));
  health.ready('signing-keys', () => keys.problem());

  const { gate, guard } = leadership(host, { namespace: config.leaseNamespace, name: lease });
  const client = guard(cluster.client);
  const requestEvents = recorder(host, 'access', client);
  return {
    gate,
    ports: {},
    reviews: accessReviews({
      stores,
      signer,
      tally,
      grantable,
      client: cluster.client,
      events: podEvents,
      breakGlassGroup: config.breakGlassGroup,
    }),
    loops: {
      client,
      signer,
      tally,
      grantable,
      stores,
      journal,
      events: requestEvents,
      clock,
      log,
      metrics,
      trustExistingTemplates: config.trustExistingTemplates,
    },
    certificates: own && { ...own, client, clock, log, metrics },
    // Without keys every live grant would fail its first look. Ends need none, so nothing waits long for them.
    ready: () => Promise.race([keysTried, sleep(clock, keysWaitMs, signal).catch(() => undefined)]),
    close: { events: () => Promise.all([podEvents.close(), requestEvents.close()]) },
  };
}

interface AdmissionDeps {
  readonly stores: AccessStores;
  readonly signer: Signer;
  readonly tally: GrantTally;
  readonly grantable: readonly RbacRule[];
  readonly client: Client;
  readonly events: EventRecorder;
  readonly breakGlassGroup: string | undefined;
}

function accessReviews(deps: AdmissionDeps): AccessReviews {
  const { stores, signer, tally, grantable, client, events, breakGlassGroup } = deps;
  return {
    ...admissionReads(stores, client, tally),
    grantable,
    sealStamp: (stamp) => signer.sealStamp(stamp),
    sealAuthor: (stamp) => signer.sealAuthor(stamp),
    ...enteredPods({ stores, client, signer, clock }),
    breakGlassGroup,
    podEntered: ({ type, namespace, pod, reason, note }) => {
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
