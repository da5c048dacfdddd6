import { accesses } from '../api/access/kinds.ts';
import { requestLabel } from '../api/access/names.ts';
import { type KubeObject, keyOf, type Resource } from '../api/object.ts';
import { pods, roleBindings, roles } from '../api/resources.ts';
import { type Clock, sleep } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import type { Client } from '../kube/client.ts';
import { isConflict, isNotFound } from '../kube/errors.ts';

export interface RevokeAllOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** Time after which `revokeAll` rejects, milliseconds. A pass that is running then continues to its end. */
  readonly timeoutMs: number;
  /** Takes one line of progress, without its newline. */
  readonly printLine: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Pause between two passes, milliseconds. */
const POLL_MS = 500;
/** Longer than an API server takes to apply a new policy that denies requests, about a second. */
const QUIET_MS = 3000;
/** Time after which an unchanged line of progress is printed again, milliseconds. */
const REPEAT_MS = 10_000;
const CONCURRENT_DELETES = 20;
const MAX_NAMED = 5;

interface Remaining {
  readonly requests: readonly string[];
  readonly children: readonly string[];
}

/**
 * Deletes every request in every namespace, until no request and no object of a grant has existed for 3 s. Does not wait for objects of
 * grants that are being deleted, except RoleBindings with subjects. A server must be running, because it revokes the access and then
 * removes its finalizer from the request. If a call fails, reports the error and tries again.
 * Rejects with `StillOpen` after `timeoutMs`; the message names up to 5 objects that remain. If `signal` aborts, rejects with its reason.
 */
export async function revokeAll({ client, clock, timeoutMs, printLine, signal }: RevokeAllOptions): Promise<void> {
  const deadlineMs = clock.monotonic() + timeoutMs;
  const report = onChange(clock, printLine);
  let lastLine = '';
  let quietSinceMs: number | undefined;
  for (;;) {
    try {
      const remaining = await deleteRequests(client, signal);
      lastLine = describeRemaining(remaining);
      if (remaining.requests.length + remaining.children.length > 0) quietSinceMs = undefined;
      else quietSinceMs ??= clock.monotonic();
      report(lastLine);
    } catch (error) {
      quietSinceMs = undefined;
      lastLine = `the last attempt failed: ${describe(error)}`;
      report(`retrying: ${describe(error)}`);
    }
    if (quietSinceMs !== undefined && clock.monotonic() - quietSinceMs >= QUIET_MS) return;
    if (clock.monotonic() >= deadlineMs) {
      throw new CodedError(
        'StillOpen',
        `${lastLine} after ${timeoutMs / 1000} s; a running server must revoke the access; check kubectl get pods -A -l app.kubernetes.io/name=drawbridge`,
      );
    }
    await sleep(clock, POLL_MS, signal);
  }
}

/** Deletes every request that is not being deleted. Resolves to all requests that it found, and to the objects of grants in effect. */
async function deleteRequests(client: Client, signal: AbortSignal): Promise<Remaining> {
  const requests: string[] = [];
  for (const { resource } of accesses.map(({ request }) => request)) {
    const found = await listInstalled(client, resource, { signal });
    requests.push(...found.map((object) => describeObject(resource, object)));
    const live = found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    for (let i = 0; i < live.length; i += CONCURRENT_DELETES) {
      await Promise.all(
        live.slice(i, i + CONCURRENT_DELETES).map((object) => deleteOne(client, resource, object, signal)),
      );
    }
  }
  const children: string[] = [];
  for (const resource of [roleBindings, roles, pods]) {
    const found = (await listInstalled(client, resource, { labelSelector: requestLabel, signal })).filter(isInEffect);
    children.push(...found.map((object) => describeObject(resource, object)));
  }
  return { requests, children };
}

/** The objects of the resource; none if its kind is not installed. */
async function listInstalled(
  client: Client,
  resource: Resource,
  options: { labelSelector?: string; signal: AbortSignal },
): Promise<KubeObject[]> {
  try {
    return (await client.list(resource, options)).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

async function deleteOne(client: Client, resource: Resource, object: KubeObject, signal: AbortSignal): Promise<void> {
  const { name, namespace, uid } = object.metadata;
  const key = { name, ...(namespace === undefined ? {} : { namespace }) };
  try {
    await client.delete(resource, key, { signal, ...(uid === undefined ? {} : { uid }) });
  } catch (error) {
    // Another object has the same name now; the next pass finds it.
    if (!isConflict(error)) throw error;
  }
}

/** False for an object that is being deleted: it waits for its node or a finalizer. A RoleBinding with subjects still gives access. */
const isInEffect = ({ metadata, ...object }: KubeObject): boolean => {
  const subjects = own(object, 'subjects');
  return metadata.deletionTimestamp === undefined || (Array.isArray(subjects) && subjects.length > 0);
};

const describeObject = ({ kind }: Resource, { metadata }: KubeObject): string => `${kind} ${keyOf(metadata)}`;

function describeRemaining({ requests, children }: Remaining): string {
  const all = [...requests, ...children];
  if (all.length === 0) return 'nothing is open';
  const names = all.slice(0, MAX_NAMED).join(', ') + (all.length > MAX_NAMED ? ', …' : '');
  return `${requests.length} requests and ${children.length} objects of grants remain: ${names}`;
}

/** Reports a line when it differs from the previous one, and every 10 s. */
function onChange(clock: Clock, printLine: (line: string) => void): (line: string) => void {
  let last = '';
  let printedAtMs = 0;
  return (line) => {
    if (line === last && clock.monotonic() - printedAtMs < REPEAT_MS) return;
    last = line;
    printedAtMs = clock.monotonic();
    printLine(line);
  };
}
