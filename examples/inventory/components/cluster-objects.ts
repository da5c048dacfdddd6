import { isDeepStrictEqual } from 'node:util';
import type { ComponentsDeps } from './inputs.ts';
import { type Clock, parseTime } from './sdk/clock.ts';
import { entryUidLabel, type ReconcileRequest, type RunContext } from './sdk/contract.ts';
import { inlineCredentials } from './sdk/credentials.ts';
import {
  apiVersionOf,
  findObject,
  type KubeClient,
  type KubeObject,
  keyOf,
  type ObjectName,
  type Resource,
} from './sdk/kubernetes.ts';
import { CodedError, isRecord } from './sdk/values.ts';

/** An object that a component owns for one entry, as the label with the entry's UID says. */
export interface DesiredObject {
  readonly resource: Resource;
  readonly name: ObjectName;
  readonly entryUid: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Without apiVersion, kind, and metadata. Other fields of the object stay. */
  readonly content: Readonly<Record<string, unknown>>;
}

/**
 * Creates the object or corrects its fields, unless it is being deleted. Rejects with CodedError
 * `NotOurs` if it lacks the label of the entry, and as the client does.
 */
export async function ensure(client: KubeClient, wanted: DesiredObject, signal: AbortSignal): Promise<KubeObject> {
  const { resource, name, entryUid, annotations, content } = wanted;
  const labels = { [entryUidLabel]: entryUid };
  const found = await findOwned(client, wanted, signal);
  if (!found) {
    const metadata = { ...name, labels, ...(annotations ? { annotations: { ...annotations } } : {}) };
    const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, ...content };
    return client.create(resource, object, { signal });
  }
  if (found.metadata.deletionTimestamp !== undefined) return found;
  const matches = covers(found, content) && covers(found.metadata.annotations ?? {}, annotations ?? {});
  if (matches) return found;
  const metadata = { uid: found.metadata.uid, ...(annotations ? { annotations } : {}) };
  return client.mergePatch(resource, name, { metadata, ...content }, { signal });
}

/** Rejects as the client does, and with CodedError `NotOurs` without the label of the entry. */
export async function remove(
  client: KubeClient,
  wanted: Pick<DesiredObject, 'resource' | 'name' | 'entryUid'>,
  signal: AbortSignal,
): Promise<'absent' | 'deleted'> {
  const found = await findOwned(client, wanted, signal);
  if (!found) return 'absent';
  const { uid } = found.metadata;
  const deletion = await client.delete(wanted.resource, wanted.name, { ...(uid ? { uid } : {}), signal });
  return deletion === 'absent' ? 'absent' : 'deleted';
}

async function findOwned(
  client: KubeClient,
  { resource, name, entryUid }: Pick<DesiredObject, 'resource' | 'name' | 'entryUid'>,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const found = await findObject(client, resource, name, { signal });
  if (!found || found.metadata.labels?.[entryUidLabel] === entryUid) return found;
  const problem = `${resource.plural} ${keyOf(name)} exists but does not belong to this entry`;
  // An abandoned component leaves such objects. Only an administrator knows whether they are
  // needed.
  const namespaceFlag = name.namespace === undefined ? '' : ` -n ${name.namespace}`;
  const remedy = `if nothing else uses it, delete it, or let the component adopt it, and so change and delete it: kubectl label ${resource.plural} ${name.name}${namespaceFlag} --overwrite ${entryUidLabel}=${entryUid}`;
  throw new CodedError('NotOurs', `${problem}; ${remedy}`);
}

/** Lists must have the same length, and each item must be covered. */
function covers(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found) || found.length !== wanted.length) return false;
    return wanted.every((item, index) => covers(found[index], item));
  }
  if (!isRecord(wanted)) return isDeepStrictEqual(found, wanted);
  if (!isRecord(found)) return false;
  return Object.entries(wanted).every(([field, value]) => Object.hasOwn(found, field) && covers(found[field], value));
}

/** Of the time until the deadline of the call, so that the component can still answer. */
const timeoutShare = 0.7;
/** A deadline that another clock set may be far off. */
const timeoutBounds = { minMs: 1_000, maxMs: 20_000 };

/**
 * Connects to the cluster of a kubeconfig while `work` runs. `ClusterAway` aborts its signal after
 * 70 % of the time until the deadline of the call, within 1 to 20 s. Rejects as `work` and
 * `inlineCredentials` do; `NotOurs` then names the managed cluster.
 */
export async function withCluster<T>(
  { connect, clock }: Pick<ComponentsDeps, 'connect' | 'clock'>,
  run: Pick<RunContext, 'request' | 'signal'>,
  kubeconfig: string,
  work: (client: KubeClient, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const client = connect(inlineCredentials(kubeconfig));
  const timeoutMs = timeoutOf(run.request, clock);
  const aborter = new AbortController();
  const onAbort = (): void => aborter.abort(run.signal.reason);
  run.signal.addEventListener('abort', onAbort, { once: true });
  const cancel = clock.schedule(timeoutMs, () => {
    const message = `the managed cluster did not answer within ${Math.round(timeoutMs)} ms; check that this component can reach it`;
    aborter.abort(new CodedError('ClusterAway', message));
  });
  try {
    return await work(client, aborter.signal);
  } catch (error) {
    if (!(error instanceof CodedError && error.code === 'NotOurs')) throw error;
    throw new CodedError(error.code, `in the managed cluster, ${error.message}`);
  } finally {
    cancel();
    run.signal.removeEventListener('abort', onAbort);
  }
}

function timeoutOf({ run }: ReconcileRequest, clock: Clock): number {
  const remainingMs = (parseTime(run.deadline) ?? clock.now()) - clock.now();
  return Math.min(timeoutBounds.maxMs, Math.max(timeoutBounds.minMs, remainingMs * timeoutShare));
}
