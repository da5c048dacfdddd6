import { createHash } from 'node:crypto';
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
import { type Clock, formatTime, parseTime } from './sdk/clock.ts';
import {
  type Component,
  forceAnnotation,
  kubeconfigKey,
  kubeconfigOutput,
  kubeconfigSecretName,
  type Outcome,
  type RunContext,
} from './sdk/contract.ts';
import { hasStatus, isNotFound, type KubeClient, type KubeObject, keyOf } from './sdk/kubernetes.ts';
import { CodedError, describe, own, valueAt } from './sdk/values.ts';

const name = 'kubeconfig';
const shootNamePath = '/status/outputs/cluster/shootName';
const endpointPath = '/status/outputs/cluster/endpoint';
const caPath = '/status/outputs/cluster/ca';

/** Gardener issues no kubeconfig for less than `min`. */
const lifetimeSeconds = { min: 600, default: 86_400 };

/**
 * Publishes the kubeconfig of a Gardener cluster, and replaces it after about 60 % of its lifetime.
 * With an interval above 30 % of the lifetime, it may expire before that.
 */
export function kubeconfigComponent({ management, clock }: ComponentsDeps): Component {
  return {
    name,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      if (run.request.operation === 'delete') return deletedOnceUnused(entry);
      const notReady = notReadyUnlessPresent(entry, shootNamePath, endpointPath);
      if (notReady) return notReady;
      const shootName = textAt(entry, shootNamePath);
      // Not NotReady, because the path has a value.
      if (shootName === undefined) {
        const message = `${shootNamePath} is not a text; the component that writes it must publish the name of the Shoot`;
        return { outcome: 'Failed', message };
      }
      const shootKey = { namespace: entry.metadata.namespace ?? '', name: shootName };
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

/** NotReady while other components have outputs: they need the kubeconfig for their teardown. */
export const deletedOnceUnused = (entry: KubeObject): Outcome =>
  notReadyUnlessAbsent(entry, ...outputPathsExcept(entry, 'network', 'cluster', 'kubeconfig')) ?? {
    outcome: 'Deleted',
  };

/** Seconds, at least 600; default one day. */
export function lifetimeOf(entry: KubeObject, component: string): number {
  const configured = wholeNumberAt(entry, configOf(component, 'lifetimeSeconds'));
  return Math.max(lifetimeSeconds.min, configured ?? lifetimeSeconds.default);
}

/** Rejects with CodedError `NoKubeconfig` if Gardener answers none, and as the client does. */
async function requestAdminKubeconfig(
  management: KubeClient,
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
    expiresAtMs: parseTime(own(status, 'expirationTimestamp')) ?? clock.now() + expirationSeconds * 1000,
  };
}

export interface IssuedKubeconfig {
  readonly text: string;
  /** Epoch milliseconds. */
  readonly expiresAtMs: number;
}

interface KubeconfigSource {
  readonly component: string;
  /** Digest of its inputs, such as endpoint and CA. A new one needs a new kubeconfig. */
  readonly origin: string;
  readonly issue: () => Promise<IssuedKubeconfig>;
}

/** Share of its lifetime after which a kubeconfig is replaced. It stays valid for the rest. */
const rotationShare = 0.6;
/** Spreads that share over 55 to 65 %, for kubeconfigs that were issued together. */
const rotationSpread = 0.1;

/**
 * Issues a kubeconfig into the Secret and publishes it, unless the published one is current: same
 * origin, force annotation, and content, and before its rotation. After a crash in between, the
 * next run issues another. Failed if `issue` rejects with 422.
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
    if (!hasStatus(error, 422)) throw error;
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

/** Undefined if the text is missing or empty. */
export function textIn(secret: KubeObject | undefined, key: string = kubeconfigKey): string | undefined {
  const data = own(own(secret, 'data'), key);
  return typeof data === 'string' && data !== '' ? Buffer.from(data, 'base64').toString('utf8') : undefined;
}

/** 12 hex digits of the SHA-256. Of a kubeconfig: its version, which triggers its readers. */
export const digestOf = (text: string | undefined): string => sha256Hex(text ?? '').slice(0, 12);

const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Epoch milliseconds; in the past if the times are unreadable. */
function rotationTime(published: unknown, version: string): number {
  const issued = parseTime(own(published, 'issuedAt'));
  const expires = parseTime(own(published, 'expiresAt'));
  if (issued === undefined || expires === undefined) return Number.NEGATIVE_INFINITY;
  // Fixed for each kubeconfig.
  const random = Number.parseInt(sha256Hex(version).slice(0, 8), 16) / 2 ** 32;
  return issued + (expires - issued) * (rotationShare + rotationSpread * (random - 0.5));
}

/** Undefined instead of a 404, or of what `isAbsence` accepts. */
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
