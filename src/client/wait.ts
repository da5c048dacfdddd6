import type { KubeObject } from '../api/object.ts';
import {
  nameIn,
  requestResource,
  requestWithFlags,
  type TypedObject,
  type TypeName,
  typeOf,
} from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import type { Context } from './command.ts';
import { exits } from './command-spec.ts';
import { follow } from './follow.ts';
import { Problem } from './problem.ts';
import { Progress } from './progress.ts';
import { cannotOpen, isUsable, specOf, stateOf, statusOf, whomToAsk } from './request-state.ts';
import { timeFrom } from './times.ts';

export interface WaitOptions {
  /** Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** The index of the extension whose decision ends the wait. Default: waits until access is open. */
  readonly extension?: number;
}

/**
 * Shows progress until access is open. Rejects with a Problem if the request ends, or after a
 * timeout or an abort, with the commands to continue; and as `follow` does.
 */
export async function waitFor(
  { io, clock, signal }: Context,
  connection: ClusterConnection,
  { type, object }: TypedObject,
  { timeoutMs = Number.POSITIVE_INFINITY, extension }: WaitOptions,
): Promise<KubeObject> {
  const progress = new Progress(io);
  const name = nameIn(object);
  const deadlineMs = clock.monotonic() + timeoutMs;
  const isDone = (request: KubeObject): boolean => {
    if (extension === undefined) return isUsable(request);
    return ['Granted', 'Denied'].includes(statusOf(request).extensions?.[extension]?.state ?? '');
  };
  const whyOf = (request: KubeObject): string =>
    (extension === undefined ? waitingText(connection, request) : statusOf(request).extensions?.[extension]?.message) ||
    'waiting for the server';
  const [unfinished, toContinue] =
    extension === undefined
      ? ['access is not open', nextCommands(connection, type, name.name)]
      : [
          'the extension is not decided',
          `To see it: ${connection.program} get ${requestWithFlags(connection, type, name.name)}`,
        ];
  let shown = whyOf(object);
  const onChange = (request: KubeObject | undefined): KubeObject | undefined => {
    if (!request || request.metadata.uid !== object.metadata.uid)
      throw new Problem(exits.ended, `${name.name} has ended: the request was deleted`);
    if (cannotOpen(stateOf(request).state)) throw endedProblem(request);
    shown = whyOf(request);
    if (isDone(request)) return request;
    progress.show(shown);
    return undefined;
  };
  const tick = (): void => {
    progress.spin();
    if (clock.monotonic() >= deadlineMs)
      throw new Problem(exits.timedOut, `timed out; ${unfinished}: ${shown}. ${toContinue}`);
  };
  try {
    const followed = [{ resource: requestResource(type), name }];
    return await follow(connection, followed, { clock, signal, onChange, tick, toContinue });
  } catch (error) {
    // Repeats the last progress, which a terminal has erased by then.
    if (signal.aborted) throw new Problem(exits.interrupted, `interrupted; ${unfinished}: ${shown}. ${toContinue}`);
    throw error;
  } finally {
    progress.end();
  }
}

/** Commands to wait for a request again and to revoke it. */
export function nextCommands(connection: ClusterConnection, type: TypeName, name: string): string {
  const { program } = connection;
  const target = requestWithFlags(connection, type, name);
  return `To go on: ${program} watch ${target}. To revoke it: ${program} revoke ${target}`;
}

const isClaimable = (request: KubeObject): boolean =>
  stateOf(request).state === 'Waiting' && statusOf(request).approval?.state === 'Claimable';

/** How its requester starts access; empty if the request waits for no claim. */
export function claimText(connection: Pick<ClusterConnection, 'program' | 'where'>, request: KubeObject): string {
  if (!isClaimable(request) || specOf(request).claimed) return '';
  const target = requestWithFlags(connection, typeOf(request), request.metadata.name);
  return `claim it with: ${connection.program} claim ${target}`;
}

/** The server has yet to see a claim. */
function waitingText(connection: ClusterConnection, request: KubeObject): string {
  const { why } = stateOf(request);
  if (!isClaimable(request)) return why;
  return specOf(request).claimed ? 'access is being opened' : `${why}; ${claimText(connection, request)}`;
}

/** For a request that was denied, has ended, or is ending. */
export function endedProblem(request: KubeObject): Problem {
  const { state, why, code } = stateOf(request);
  const { name } = request.metadata;
  if (state === 'Ending')
    return new Problem(exits.ended, `${name} ends: ${why}; the server has not closed the access yet`);
  if (state !== 'Denied') return new Problem(exits.ended, `${name} has ended: ${why}`);
  const remedy = whomToAsk(code);
  return new Problem(exits.denied, `${name} was denied: ${why}${remedy === '' ? '' : `. ${remedy}`}`);
}

/** To use the name of an ended request again, before the server deletes it. */
export function deleteText(connection: ClusterConnection, request: KubeObject): string {
  return `to delete it: kubectl delete ${request.kind.toLowerCase()} ${request.metadata.name} ${connection.where}`;
}

/** As a clause; empty if the request has no end yet. */
export function openText(request: KubeObject, nowMs: number): string {
  const { endsMs } = stateOf(request);
  return endsMs === undefined ? '' : `access is open until ${timeFrom(endsMs, nowMs)}`;
}
