import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import { forceAnnotation, kubeconfigKey, kubeconfigOutput, kubeconfigSecretName } from '../../api/inventory/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { sha256Hex } from '../../kit/canonical-json.ts';
import { type Clock, formatTime, parseTime } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { valueAt } from '../../kit/json-pointer.ts';
import { own } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isNotFound } from '../../kube/errors.ts';
import type { Component, RunContext } from '../ports.ts';
import { shoots } from './cluster.ts';
import {
  type ComponentsDeps,
  configOf,
  missingOf,
  outputsBesides,
  textAt,
  waitForAbsence,
  wholeNumberAt,
} from './inputs.ts';

const name = 'kubeconfig';
const shoot = '/status/outputs/cluster/shootName';
const endpoint = '/status/outputs/cluster/endpoint';
const authority = '/status/outputs/cluster/ca';

/** Lifetimes in seconds. Gardener's minimum is 10 minutes. */
const lifetimes = { min: 600, default: 86_400 };

/** Publishes the kubeconfig of a Gardener cluster. The first run after about 60 % of its lifetime replaces it. */
export function kubeconfigComponent({ management, namespace, clock }: ComponentsDeps): Component {
  return {
    name,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      if (run.request.operation === 'delete') return whenUnused(entry);
      const missing = missingOf(entry, shoot, endpoint);
      if (missing) return missing;
      const shootKey = { namespace: namespace ?? entry.metadata.namespace ?? '', name: textAt(entry, shoot) ?? '' };
      const lifetimeSeconds = lifetimeOf(entry, name);
      const source = {
        component: name,
        origin: versionOf(`${textAt(entry, endpoint)} ${textAt(entry, authority)}`),
        issue: () => adminKubeconfig(management, shootKey, lifetimeSeconds, clock, run.signal),
      };
      return keepKubeconfig(run, entry, source, clock);
    },
  };
}

/**
 * Deleted once the entry has no outputs besides `network`, `cluster`, and `kubeconfig`. Until then NotReady, because other components need
 * the kubeconfig to tear down their resources.
 */
export const whenUnused = (entry: KubeObject): Outcome =>
  waitForAbsence(entry, ...outputsBesides(entry, 'network', 'cluster', 'kubeconfig')) ?? { outcome: 'Deleted' };

/** Configured lifetime of a component's kubeconfigs, seconds: at least 600; default: one day. */
export function lifetimeOf(entry: KubeObject, component: string): number {
  return Math.max(lifetimes.min, wholeNumberAt(entry, configOf(component, 'lifetimeSeconds')) ?? lifetimes.default);
}

/** Requests a kubeconfig from Gardener. Rejects like the client, and with CodedError `NoKubeconfig` if the answer contains none. */
async function adminKubeconfig(
  management: Client,
  shootKey: { readonly namespace: string; readonly name: string },
  expirationSeconds: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<IssuedKubeconfig> {
  const request = {
    apiVersion: 'authentication.gardener.cloud/v1alpha1',
    kind: 'AdminKubeconfigRequest',
    metadata: { ...shootKey },
    spec: { expirationSeconds },
  };
  const { status } = await management.create(shoots, request, { subresource: 'adminkubeconfig', signal });
  const [kubeconfig, expires] = [own(status, 'kubeconfig'), own(status, 'expirationTimestamp')];
  if (typeof kubeconfig !== 'string')
    throw new CodedError('NoKubeconfig', 'the answer of Gardener contains no kubeconfig');
  return {
    text: Buffer.from(kubeconfig, 'base64').toString('utf8'),
    expiresAtMs: instant(expires) ?? clock.now() + expirationSeconds * 1000,
  };
}

/** A new kubeconfig. */
export interface IssuedKubeconfig {
  readonly text: string;
  /** Epoch milliseconds. */
  readonly expiresAtMs: number;
}

/** How a component issues its kubeconfigs. */
interface KubeconfigSource {
  readonly component: string;
  /** Version of the source. A change requires a new kubeconfig. */
  readonly origin: string;
  readonly issue: () => Promise<IssuedKubeconfig>;
}

/** Share of its lifetime after which a kubeconfig is replaced. The old one stays valid for the rest. */
const rotateAt = 0.6;
/** Spread around that share, so that kubeconfigs issued together are not replaced together. */
const rotationSpread = 0.1;

/**
 * Keeps a valid kubeconfig in the Secret of the entry and publishes its location. Issues a new one if the Secret contains none, or not
 * the published one. Also issues a new one if its origin or the force annotation changed, or rotation is due. Writes the Secret before the
 * outputs: after a crash in between, the next run issues another one. Rejects as `issue` and the accessor do. If `issue` rejects with
 * status 422, resolves to Failed.
 */
export async function keepKubeconfig(
  { entry, request }: RunContext,
  object: KubeObject,
  { component, origin, issue }: KubeconfigSource,
  clock: Clock,
): Promise<Outcome> {
  const force = object.metadata.annotations?.[forceAnnotation(component)];
  const published = valueAt(object, kubeconfigOutput);
  const version = own(published, 'version');
  const isCurrent =
    typeof version === 'string' &&
    own(published, 'origin') === origin &&
    own(published, 'forced') === force &&
    clock.now() < rotationTime(published, version) &&
    version === versionOf(textIn(await ifPresent(entry.kubeconfig())));
  if (isCurrent) return { outcome: 'Done' };
  const issuedAt = formatTime(clock.now());
  const issued = await issue().catch(failedIfInvalid);
  if ('outcome' in issued) return issued;
  const { text, expiresAtMs } = issued;
  await entry.writeKubeconfig(text);
  const outputs = {
    secretRef: { name: kubeconfigSecretName(request.entry.id), key: kubeconfigKey },
    version: versionOf(text),
    issuedAt,
    expiresAt: formatTime(expiresAtMs),
    origin,
    forced: force ?? null,
  };
  return { outcome: 'Done', outputs: { kubeconfig: outputs } };
}

/** Failed for status 422: the same request stays invalid, for example because its lifetime is too long. */
function failedIfInvalid(error: unknown): Outcome {
  if (error instanceof ApiError && error.code === 422) return { outcome: 'Failed', message: describe(error) };
  throw error;
}

/** The text under `key` in a Secret; undefined if there is none or it is empty. */
export function textIn(secret: KubeObject | undefined, key: string = kubeconfigKey): string | undefined {
  const data = own(own(secret, 'data'), key);
  return typeof data === 'string' && data !== '' ? Buffer.from(data, 'base64').toString('utf8') : undefined;
}

/** Version of a kubeconfig, 12 hex digits of its digest. A new version triggers its readers. */
export const versionOf = (text: string | undefined): string => sha256Hex(text ?? '').slice(0, 12);

/** Time to replace the published kubeconfig, epoch milliseconds; in the past if its times are unreadable. */
function rotationTime(published: unknown, version: string): number {
  const [issuedAt, expiresAt] = [own(published, 'issuedAt'), own(published, 'expiresAt')];
  const [issued, expires] = [instant(issuedAt), instant(expiresAt)];
  if (issued === undefined || expires === undefined) return Number.NEGATIVE_INFINITY;
  // A fixed pseudo-random number for each kubeconfig.
  const random = Number.parseInt(sha256Hex(version).slice(0, 8), 16) / 2 ** 32;
  return issued + (expires - issued) * (rotateAt + rotationSpread * (random - 0.5));
}

const instant = (text: unknown): number | undefined => (typeof text === 'string' ? parseTime(text) : undefined);

/** Resolves to undefined if `reading` rejects with an absence, by default NotFound. Rejects with any other error. */
export async function ifPresent(
  reading: Promise<KubeObject>,
  isAbsence: (error: unknown) => boolean = isNotFound,
): Promise<KubeObject | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}
