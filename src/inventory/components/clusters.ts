import { isDeepStrictEqual } from 'node:util';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import { apiVersionOf, type KubeObject, keyOf, type ObjectName, type Resource } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { isRecord } from '../../kit/json-value.ts';
import { type Client, type Deletion, findObject } from '../../kube/client.ts';
import { inlineCredentials } from '../../kube/inline-kubeconfig.ts';
import type { RunContext } from '../ports.ts';
import type { ComponentsDeps } from './inputs.ts';

/** What a component wants there to be, for one entry. */
export interface Wanted {
  readonly resource: Resource;
  readonly name: ObjectName;
  readonly entryUid: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Fields besides apiVersion, kind and metadata. What others set beside them stays. */
  readonly content: Readonly<Record<string, unknown>>;
}

/**
 * Makes it, or puts right what somebody has changed; writes nothing when all is as wanted. One that is being deleted is handed back as
 * it is. Rejects as the client does, and with CodedError `NotOurs` when the object belongs to something else.
 */
export async function ensure(client: Client, wanted: Wanted, signal: AbortSignal): Promise<KubeObject> {
  const { resource, name, entryUid, annotations, content } = wanted;
  const labels = { [entryUidLabel]: entryUid };
  const found = await findOurs(client, wanted, signal);
  if (!found) {
    const metadata = { ...name, labels, ...(annotations ? { annotations: { ...annotations } } : {}) };
    const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata, ...content };
    return client.create(resource, object, { signal });
  }
  if (found.metadata.deletionTimestamp !== undefined) return found;
  const asWanted = covers(found, content) && covers(found.metadata.annotations ?? {}, annotations ?? {});
  if (asWanted) return found;
  const metadata = { uid: found.metadata.uid, ...(annotations ? { annotations } : {}) };
  return client.mergePatch(resource, name, { metadata, ...content }, { signal });
}

/** Deletes it if it belongs to the entry; `absent` when there is none. */
export async function remove(
  client: Client,
  wanted: Pick<Wanted, 'resource' | 'name' | 'entryUid'>,
  signal: AbortSignal,
): Promise<Deletion> {
  const found = await findOurs(client, wanted, signal);
  if (!found) return 'absent';
  const { uid } = found.metadata;
  return client.delete(wanted.resource, wanted.name, { ...(uid ? { uid } : {}), signal });
}

async function findOurs(
  client: Client,
  { resource, name, entryUid }: Pick<Wanted, 'resource' | 'name' | 'entryUid'>,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const found = await findObject(client, resource, name, { signal });
  if (!found || found.metadata.labels?.[entryUidLabel] === entryUid) return found;
  const what = `${resource.plural} ${keyOf(name)} is there already, and not for this entry`;
  // As after an abandon: only people know whether whoever made it still wants it.
  const remedy = `delete it, or give it the label ${entryUidLabel}=${entryUid} to hand it over`;
  throw new CodedError('NotOurs', `${what}; ${remedy}`);
}

/** Whether all of `wanted` is in `found`; lists have to be as long, and each item covered. */
function covers(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found) || found.length !== wanted.length) return false;
    return wanted.every((item, index) => covers(found[index], item));
  }
  if (!isRecord(wanted)) return isDeepStrictEqual(found, wanted);
  if (!isRecord(found)) return false;
  return Object.entries(wanted).every(([field, value]) => Object.hasOwn(found, field) && covers(found[field], value));
}

/** Part of the time that the server waits for an answer which the cluster has for its own. */
const SHARE = 0.7;
/** Whatever the two clocks say, milliseconds. */
const bounds = { leastMs: 1_000, mostMs: 20_000 };

/**
 * Opens the cluster of a kubeconfig for as long as `work` takes. A cluster that is away must not make the component late: that would
 * count against the component, and so against other entries. Rejects with CodedError `ClusterAway` in time for an answer, and as
 * `inlineCredentials` does for a text that it refuses.
 */
export async function withCluster<T>(
  { connect, clock }: Pick<ComponentsDeps, 'connect' | 'clock'>,
  run: Pick<RunContext, 'request' | 'signal'>,
  kubeconfig: string,
  work: (client: Client, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const cluster = connect(await inlineCredentials(kubeconfig));
  const patienceMs = patienceOf(run.request, clock);
  const away = new AbortController();
  const giveUp = (): void => away.abort(run.signal.reason);
  run.signal.addEventListener('abort', giveUp, { once: true });
  const cancel = clock.schedule(patienceMs, () => {
    const message = `the cluster did not answer within ${Math.round(patienceMs)} ms`;
    away.abort(new CodedError('ClusterAway', message));
  });
  try {
    return await work(cluster.client, away.signal);
  } finally {
    cancel();
    run.signal.removeEventListener('abort', giveUp);
    // Nothing is in flight any more that anybody waits for.
    cluster.close().catch(() => undefined);
  }
}

function patienceOf({ run }: ReconcileRequest, clock: Clock): number {
  const leftMs = (parseTime(run.deadline) ?? clock.now()) - clock.now();
  return Math.min(bounds.mostMs, Math.max(bounds.leastMs, leftMs * SHARE));
}
