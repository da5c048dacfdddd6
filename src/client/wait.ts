import type { KubeObject } from '../api/object.ts';
import { nameIn, requestResource, requestWithFlags, type TypedObject, type TypeName } from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import type { Context } from './command.ts';
import { exits } from './command-spec.ts';
import { follow } from './follow.ts';
import { Problem } from './problem.ts';
import { Progress } from './progress.ts';
import { cannotOpen, specOf, stateOf, whomToAsk } from './request-state.ts';
import { timeFrom } from './times.ts';

/** `WaitOptions.done` for a wait until access is open. */
export const ifOpen = (request: KubeObject): KubeObject | undefined =>
  stateOf(request).state === 'Open' ? request : undefined;

export interface WaitOptions {
  /** Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** A result ends the wait. Not called for a request that was denied, has ended, or is ending. */
  readonly done: (request: KubeObject) => KubeObject | undefined;
  /** For a wait for an extension: what it waits for, if the status shows it. */
  readonly extensionText?: (request: KubeObject) => string;
}

/**
 * Shows progress until `done` returns a result. Rejects with a Problem if the request ends, or
 * after a timeout or an abort, with the commands to continue; and as `follow` does.
 */
export async function waitFor(
  context: Context,
  connection: ClusterConnection,
  { type, object }: TypedObject,
  options: WaitOptions,
): Promise<KubeObject> {
  const { io, clock, signal } = context;
  const progress = new Progress(io);
  const name = nameIn(object);
  const uid = object.metadata.uid;
  const deadlineMs = options.timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + options.timeoutMs;
  let latest = object;
  const claimCommand = `${io.program} claim ${requestWithFlags(connection, type, name.name)}`;
  const progressText = (request: KubeObject): string => {
    const text = options.extensionText ? options.extensionText(request) : waitingText(request, claimCommand);
    return text || 'waiting for the server';
  };
  let shown = progressText(object);
  const toContinue = options.extensionText
    ? `To see it: ${io.program} get ${requestWithFlags(connection, type, name.name)}`
    : nextCommands(context, connection, type, name.name);
  // Repeats the last progress, which a terminal has erased by then.
  const unfinishedText = (): string =>
    options.extensionText
      ? `the extension is not decided: ${shown}; ${openText(latest, clock.now()) || 'access stays open'}. ${toContinue}`
      : `access is not open: ${shown}. ${toContinue}`;
  const onChange = (request: KubeObject | undefined): KubeObject | undefined => {
    if (!request || request.metadata.uid !== uid)
      throw new Problem(exits.ended, `${name.name} has ended: the request was deleted`);
    latest = request;
    if (cannotOpen(stateOf(request).state)) throw endedProblem(request);
    const result = options.done(request);
    shown = progressText(request);
    if (!result) progress.show(shown);
    return result;
  };
  const tick = (): void => {
    progress.spin();
    if (clock.monotonic() >= deadlineMs) {
      throw new Problem(exits.timedOut, `timed out; ${unfinishedText()}`);
    }
  };
  try {
    const followed = [{ resource: requestResource(type), name }];
    return await follow(connection, followed, { clock, signal, onChange, tick, toContinue });
  } catch (error) {
    progress.end();
    if (signal.aborted) throw new Problem(exits.interrupted, `interrupted; ${unfinishedText()}`);
    throw error;
  } finally {
    progress.end();
  }
}

/** Commands to wait for a request again and to revoke it. */
export function nextCommands({ io }: Context, connection: ClusterConnection, type: TypeName, name: string): string {
  const target = requestWithFlags(connection, type, name);
  return `To go on: ${io.program} watch ${target}. To revoke it: ${io.program} revoke ${target}`;
}

/** What a request waits for, and the command if its requester must claim it. */
function waitingText(request: KubeObject, claimCommand: string): string {
  const { state, why } = stateOf(request);
  if (state !== 'Claimable') return why;
  return specOf(request).claimed ? 'access is being opened' : `${why}. To claim it: ${claimCommand}`;
}

/** For a request that was denied, has ended, or is ending. */
export function endedProblem(request: KubeObject): Problem {
  const { state, why, code } = stateOf(request);
  const { name } = request.metadata;
  if (state === 'Ending')
    return new Problem(exits.ended, `${name} ends: ${why}; the server has not closed the access yet`);
  if (state === 'Ended') return new Problem(exits.ended, `${name} has ended: ${why}`);
  const remedy = whomToAsk(code);
  return new Problem(exits.denied, `${name} was denied: ${why}${remedy === '' ? '' : `. ${remedy}`}`);
}

/** To use the name of an ended request again, before the server deletes it. */
export function deleteText(connection: ClusterConnection, request: KubeObject): string {
  const flags = ['-n', connection.namespace, ...connection.quotedFlags].join(' ');
  return `to delete it: kubectl delete ${request.kind.toLowerCase()} ${request.metadata.name} ${flags}`;
}

/** As a clause; empty if the request has no end yet. */
export function openText(request: KubeObject, nowMs: number): string {
  const { endsMs } = stateOf(request);
  return endsMs === undefined ? '' : `access is open until ${timeFrom(endsMs, nowMs)}`;
}
