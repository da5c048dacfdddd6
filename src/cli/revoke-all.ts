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
  /** `revokeAll` rejects after the first pass that finishes later without success. */
  readonly timeoutMs: number;
  /** One line of progress, without its newline. */
  readonly printLine: (line: string) => void;
  readonly signal: AbortSignal;
}

const POLL_MS = 500;
/** Nothing open for so long: an API server enforces the denial of new requests after about 1 s. */
const QUIET_MS = 3000;
/** Then an unchanged line of progress is printed again. */
const REPEAT_MS = 10_000;
const CONCURRENT_DELETES = 20;
/** Objects that a line of progress names. */
const MAX_NAMED = 5;
const LIST_SERVERS = 'kubectl get pods -A -l app.kubernetes.io/name=drawbridge,app.kubernetes.io/component=server';

interface FoundObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

/** Each as `<kind> <namespace>/<name>`. */
interface Remaining {
  /** Without a recorded end. */
  readonly requests: readonly string[];
  /** The server keeps them after their end, so that people can read how they ended. */
  readonly ended: readonly string[];
  /** Only of grants in effect. */
  readonly grantObjects: readonly string[];
}

/**
 * Deletes every request everywhere, until no request and no object of a grant in effect has existed
 * for 3 s. A server must run: it revokes the access, and then removes its finalizer. Tries again
 * after errors. Rejects with `StillOpen` after `timeoutMs`, naming what is left or the last error,
 * or with the reason of `signal`.
 */
export async function revokeAll({ client, clock, timeoutMs, printLine, signal }: RevokeAllOptions): Promise<void> {
  const deadlineMs = clock.monotonic() + timeoutMs;
  const report = printChanges(clock, printLine);
  let unfinished = '';
  let quietSinceMs: number | undefined;
  for (;;) {
    try {
      const remaining = await deleteRequests(client, signal);
      const line = describeRemaining(remaining);
      if (remaining.requests.length + remaining.ended.length + remaining.grantObjects.length > 0)
        quietSinceMs = undefined;
      else quietSinceMs ??= clock.monotonic();
      unfinished =
        quietSinceMs === undefined
          ? `${line}; a running server must revoke and remove these; check that one runs: ${LIST_SERVERS}`
          : `${line}, but for less than ${QUIET_MS / 1000} s; run the command again`;
      report(line);
    } catch (error) {
      quietSinceMs = undefined;
      unfinished = `the last attempt failed: ${describe(error)}; correct that, and run the command again`;
      report(`retrying: ${describe(error)}`);
    }
    if (quietSinceMs !== undefined && clock.monotonic() - quietSinceMs >= QUIET_MS) return;
    if (clock.monotonic() >= deadlineMs) {
      throw new CodedError('StillOpen', `not finished after ${timeoutMs / 1000} s: ${unfinished}`);
    }
    await sleep(clock, POLL_MS, signal);
  }
}

/** Resolves to all requests that it found, and to the objects of grants in effect. */
async function deleteRequests(client: Client, signal: AbortSignal): Promise<Remaining> {
  const found: FoundObject[] = [];
  for (const { resource } of accesses.map(({ request }) => request)) {
    const objects = await listInstalled(client, resource, { signal });
    found.push(...objects.map((object) => ({ resource, object })));
  }
  const open = found.filter(({ object }) => !isEnded(object));
  const ended = found.filter(({ object }) => isEnded(object));
  const live = [...open, ...ended].filter(({ object }) => object.metadata.deletionTimestamp === undefined);
  for (let i = 0; i < live.length; i += CONCURRENT_DELETES) {
    await Promise.all(
      live.slice(i, i + CONCURRENT_DELETES).map(({ resource, object }) => deleteOne(client, resource, object, signal)),
    );
  }
  const grantObjects: string[] = [];
  for (const resource of [roleBindings, roles, pods]) {
    const inEffect = (await listInstalled(client, resource, { labelSelector: requestLabel, signal })).filter(
      isInEffect,
    );
    grantObjects.push(...inEffect.map((object) => describeObject({ resource, object })));
  }
  return { requests: open.map(describeObject), ended: ended.map(describeObject), grantObjects };
}

/** None if the kind is not installed. */
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
    // Another object has the name now; the next pass finds it.
    if (!isConflict(error)) throw error;
  }
}

/** One that is being deleted gives no access, unless it is a RoleBinding with subjects. */
const isInEffect = ({ metadata, ...object }: KubeObject): boolean => {
  const subjects = own(object, 'subjects');
  return metadata.deletionTimestamp === undefined || (Array.isArray(subjects) && subjects.length > 0);
};

/** Unverified, because it decides only the order of deletion and the printed counts. */
const isEnded = ({ status }: KubeObject): boolean => own(status, 'ended') !== undefined;

const describeObject = ({ resource: { kind }, object: { metadata } }: FoundObject): string =>
  `${kind} ${keyOf(metadata)}`;

function describeRemaining({ requests, ended, grantObjects }: Remaining): string {
  if (requests.length + grantObjects.length === 0) {
    return ended.length === 0 ? 'nothing is open' : `no access is open, and ${remainText(ended)}: ${namesOf(ended)}`;
  }
  const others = ended.length === 0 ? '' : `; ${remainText(ended)}, too`;
  const names = namesOf([...requests, ...grantObjects]);
  const open = `${requests.length} open ${requests.length === 1 ? 'request' : 'requests'}`;
  const left = `${grantObjects.length} ${grantObjects.length === 1 ? 'object' : 'objects'} of grants`;
  return `${open} and ${left} remain: ${names}${others}`;
}

const remainText = ({ length }: readonly string[]): string =>
  `${length} ended ${length === 1 ? 'request remains' : 'requests remain'}`;

const namesOf = (all: readonly string[]): string =>
  all.slice(0, MAX_NAMED).join(', ') + (all.length > MAX_NAMED ? ', …' : '');

/** Prints a line that differs from the last one, or comes at least 10 s later. */
function printChanges(clock: Clock, printLine: (line: string) => void): (line: string) => void {
  let last = '';
  let printedAtMs = 0;
  return (line) => {
    if (line === last && clock.monotonic() - printedAtMs < REPEAT_MS) return;
    last = line;
    printedAtMs = clock.monotonic();
    printLine(line);
  };
}
