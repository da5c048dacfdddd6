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
  readonly timeoutMs: number;
  /** Takes one line of progress, without its newline. */
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

const LOOK_MS = 500;
/** A policy that closes the door takes about a second until every API server knows it. */
const QUIET_MS = 3000;
const REPEAT_MS = 10_000;
const AT_ONCE = 20;
const NAMED = 5;

interface Left {
  readonly requests: readonly string[];
  readonly children: readonly string[];
}

/**
 * Deletes every request of every namespace until no request, and nothing that was made for one, has been there for 3 s. The server has
 * to be running: it is what revokes, and it lets a request go only then.
 * Rejects with `StillOpen` after `timeoutMs`, naming what is left.
 */
export async function revokeAll({ client, clock, timeoutMs, say, signal }: RevokeAllOptions): Promise<void> {
  const end = clock.monotonic() + timeoutMs;
  const report = repeated(clock, say);
  let last = 'it could not be seen what is open';
  let quietSinceMs: number | undefined;
  for (;;) {
    try {
      const left = await deleteRequests(client, signal);
      last = wordsFor(left);
      if (left.requests.length + left.children.length > 0) quietSinceMs = undefined;
      else quietSinceMs ??= clock.monotonic();
      report(last);
    } catch (error) {
      quietSinceMs = undefined;
      report(`trying again: ${describe(error)}`);
    }
    if (quietSinceMs !== undefined && clock.monotonic() - quietSinceMs >= QUIET_MS) return;
    if (clock.monotonic() >= end) {
      throw new CodedError(
        'StillOpen',
        `${last} after ${timeoutMs / 1000} s; the server has to be running to revoke it`,
      );
    }
    await sleep(clock, LOOK_MS, signal);
  }
}

/** Resolves with what was there just before. */
async function deleteRequests(client: Client, signal: AbortSignal): Promise<Left> {
  const requests: string[] = [];
  for (const { resource } of accesses.map(({ request }) => request)) {
    const found = await listed(client, resource, { signal });
    requests.push(...found.map((object) => named(resource, object)));
    const live = found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    for (let i = 0; i < live.length; i += AT_ONCE) {
      await Promise.all(live.slice(i, i + AT_ONCE).map((object) => deleteOne(client, resource, object, signal)));
    }
  }
  const children: string[] = [];
  for (const resource of [roleBindings, roles, pods]) {
    const found = (await listed(client, resource, { labelSelector: requestLabel, signal })).filter(givesSomething);
    children.push(...found.map((object) => named(resource, object)));
  }
  return { requests, children };
}

/** A kind that is not installed has no objects. */
async function listed(
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
  const where = { name, ...(namespace === undefined ? {} : { namespace }) };
  try {
    await client.delete(resource, where, { signal, ...(uid === undefined ? {} : { uid }) });
  } catch (error) {
    // Another one has the name by now; the next look finds it.
    if (!isConflict(error)) throw error;
  }
}

/** Pods wait for their nodes, and others may hold what is deleted; a RoleBinding that lost its subjects gives nothing. */
const givesSomething = ({ metadata, ...object }: KubeObject): boolean => {
  const subjects = own(object, 'subjects');
  return metadata.deletionTimestamp === undefined || (Array.isArray(subjects) && subjects.length > 0);
};

const named = ({ kind }: Resource, { metadata }: KubeObject): string => `${kind} ${keyOf(metadata)}`;

function wordsFor({ requests, children }: Left): string {
  const all = [...requests, ...children];
  if (all.length === 0) return 'nothing is open';
  const names = all.slice(0, NAMED).join(', ') + (all.length > NAMED ? ', …' : '');
  return `${requests.length} requests and ${children.length} objects made for them are left: ${names}`;
}

/** Says a line when it differs from the one before, and every 10 s. */
function repeated(clock: Clock, say: (line: string) => void): (line: string) => void {
  let last = '';
  let saidMs = 0;
  return (line) => {
    if (line === last && clock.monotonic() - saidMs < REPEAT_MS) return;
    last = line;
    saidMs = clock.monotonic();
    say(line);
  };
}
