import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import { forceAnnotation, kubeconfigKey, kubeconfigOutput, kubeconfigSecretName } from '../../api/inventory/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
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
  notReadyUnlessAbsent,
  notReadyUnlessPresent,
  outputPathsExcept,
  textAt,
  wholeNumberAt,
} from './inputs.ts';

const name = 'kubeconfig';
const shootNamePath = '/status/outputs/cluster/shootName';
const endpointPath = '/status/outputs/cluster/endpoint';
const caPath = '/status/outputs/cluster/ca';

/** Lifetime of a kubeconfig, seconds. Gardener issues none for less than `min`. */
const lifetimeSeconds = { min: 600, default: 86_400 };

/**
 * Publishes the kubeconfig of a Gardener cluster. The first run after about 60 % of the kubeconfig's lifetime replaces it. If the interval
 * of the registration is above 30 % of the lifetime, the kubeconfig can expire before that run.
 */
export function kubeconfigComponent({ management, namespace, clock }: ComponentsDeps): Component {
  return {
    name,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      if (run.request.operation === 'delete') return deletedOnceUnused(entry);
      const notReady = notReadyUnlessPresent(entry, shootNamePath, endpointPath);
      if (notReady) return notReady;
      const shootName = textAt(entry, shootNamePath);
      // Failed and not NotReady, because the path has a value, so it is not missing.
      if (shootName === undefined) {
        const message = `${shootNamePath} is not a text; the component that writes it must publish the name of the Shoot`;
        return { outcome: 'Failed', message };
      }
      const shootKey = { namespace: namespace ?? entry.metadata.namespace ?? '', name: shootName };
      const expirationSeconds = lifetimeOf(entry, name);
      const source = {
        component: name,
        origin: digestOf(`${textAt(entry, endpointPath)} ${textAt(entry, caPath)}`),
        issue: () => requestAdminKubeconfig(management, shootKey, expirationSeconds, clock, run.signal),
      };
      return ensureKubeconfig(run, entry, source, clock);
    },
  };
}

/**
 * Deleted once the entry has no outputs besides `network`, `cluster`, and `kubeconfig`. Until then NotReady, because other components need
 * the kubeconfig to tear down their resources.
 */
export const deletedOnceUnused = (entry: KubeObject): Outcome =>
  notReadyUnlessAbsent(entry, ...outputPathsExcept(entry, 'network', 'cluster', 'kubeconfig')) ?? {
    outcome: 'Deleted',
  };

/** Configured lifetime of a component's kubeconfigs, seconds. Values below 600 count as 600; default: one day. */
export function lifetimeOf(entry: KubeObject, component: string): number {
  const configured = wholeNumberAt(entry, configOf(component, 'lifetimeSeconds'));
  return Math.max(lifetimeSeconds.min, configured ?? lifetimeSeconds.default);
}

/**
 * Requests a kubeconfig from Gardener. If the answer contains no expiry, the requested lifetime counts. Rejects as the client does, and
 * with CodedError `NoKubeconfig` if the answer contains no kubeconfig.
 */
async function requestAdminKubeconfig(
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
  const kubeconfig = own(status, 'kubeconfig');
  if (typeof kubeconfig !== 'string') {
    const answered = `Gardener answered the AdminKubeconfigRequest for Shoot ${keyOf(shootKey)} without status.kubeconfig`;
    throw new CodedError('NoKubeconfig', `${answered}; check the version and the log of gardener-apiserver`);
  }
  return {
    text: Buffer.from(kubeconfig, 'base64').toString('utf8'),
    expiresAtMs: parseInstant(own(status, 'expirationTimestamp')) ?? clock.now() + expirationSeconds * 1000,
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
  /** Digest of the inputs of the kubeconfig, such as the endpoint and the CA. If it changes, the component issues a new kubeconfig. */
  readonly origin: string;
  readonly issue: () => Promise<IssuedKubeconfig>;
}

/** Share of the lifetime of a kubeconfig after which the component replaces it. The old kubeconfig stays valid for the rest. */
const rotationShare = 0.6;
/** Full width of the spread around that share: 55 to 65 %. It spreads the replacements of kubeconfigs that were issued together. */
const rotationSpread = 0.1;

/**
 * Resolves to Done if the Secret of the entry contains the published kubeconfig, and the kubeconfig is current: same origin, same force
 * annotation, and before the rotation time. Otherwise issues a new kubeconfig, writes it to the Secret, and resolves to outputs with the
 * name of the Secret. If the process crashes before these outputs are written, the next run issues another kubeconfig. Resolves to Failed
 * if `issue` rejects with status 422. Rejects with any other error of `issue` and of `entry` (EntryAccessor).
 */
export async function ensureKubeconfig(
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
    version === digestOf(textIn(await ifPresent(entry.kubeconfig())));
  if (isCurrent) return { outcome: 'Done' };
  const issuedAt = formatTime(clock.now());
  let issued: IssuedKubeconfig;
  try {
    issued = await issue();
  } catch (error) {
    // A retry would send the same invalid request.
    if (!(error instanceof ApiError && error.code === 422)) throw error;
    const remedy = `correct the cause, for example spec.components.${component}.config.lifetimeSeconds`;
    return { outcome: 'Failed', message: `the request for a kubeconfig is invalid: ${describe(error)}; ${remedy}` };
  }
  const { text, expiresAtMs } = issued;
  await entry.writeKubeconfig(text);
  const outputs = {
    secretRef: { name: kubeconfigSecretName(request.entry.id), key: kubeconfigKey },
    version: digestOf(text),
    issuedAt,
    expiresAt: formatTime(expiresAtMs),
    origin,
    // Outputs are a merge patch, in which null removes the field.
    forced: force ?? null,
  };
  return { outcome: 'Done', outputs: { kubeconfig: outputs } };
}

/** The text under `key` in a Secret; undefined if the Secret is undefined, or the text is missing or empty. */
export function textIn(secret: KubeObject | undefined, key: string = kubeconfigKey): string | undefined {
  const data = own(own(secret, 'data'), key);
  return typeof data === 'string' && data !== '' ? Buffer.from(data, 'base64').toString('utf8') : undefined;
}

/** The first 12 hex digits of the SHA-256. For a kubeconfig, the published version: a new one triggers its readers. */
export const digestOf = (text: string | undefined): string => sha256Hex(text ?? '').slice(0, 12);

/** Time to replace the published kubeconfig, epoch milliseconds; in the past if its times are unreadable. */
function rotationTime(published: unknown, version: string): number {
  const issued = parseInstant(own(published, 'issuedAt'));
  const expires = parseInstant(own(published, 'expiresAt'));
  if (issued === undefined || expires === undefined) return Number.NEGATIVE_INFINITY;
  // A fixed pseudo-random number for each kubeconfig.
  const random = Number.parseInt(sha256Hex(version).slice(0, 8), 16) / 2 ** 32;
  return issued + (expires - issued) * (rotationShare + rotationSpread * (random - 0.5));
}

const parseInstant = (text: unknown): number | undefined => (typeof text === 'string' ? parseTime(text) : undefined);

/**
 * Resolves to undefined if `reading` rejects with an error for which `isAbsence` is true; default: any 404. Rejects with any other error.
 */
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
