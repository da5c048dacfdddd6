import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import { callbackPath, type ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { clusterInventories } from '../../api/inventory/names.ts';
import { formatMicroTime, formatTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { RunRecord } from '../core/run-record.ts';
import type { Entry } from '../entry.ts';
import { runId } from '../key.ts';
import type { IssuedToken, Reply } from '../ports.ts';
import type { EventFactory } from './entry-snapshot.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import type { CurrentRun, KeyMemory } from './key-memory.ts';

/** Minimum heartbeat timeout after a 202, milliseconds. */
const minHeartbeatTimeoutMs = 1000;

/**
 * Calls the component. Undefined if this process did not start the run. Rejects only when
 * leadership ends; any other error becomes a reply `Crashed`.
 */
export function callComponent(deps: KeyLoopDeps, memory: KeyMemory, entry: Entry): Promise<Reply> | undefined {
  const { components, clock, signal, reporter } = deps;
  const { run, state, oldestTrigger } = memory;
  if (!state.stored || !run?.token || !run.snapshot) return undefined;
  const { record } = state.stored;
  if (oldestTrigger) reporter.dispatched(record, oldestTrigger.lane, clock.monotonic() - oldestTrigger.since);
  memory.oldestTrigger = undefined;
  const { registration } = run;
  const request = requestOf(deps, entry, record, run.token, registration.timeoutMs);
  return components.invoke(registration, request, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    const message = `the server failed to call the component: ${describe(error)}; report this error to the maintainers with the log of the server`;
    return { kind: 'failed', code: 'Crashed', message };
  });
}

/** Undefined if the run is no longer active, for example because a report ended it. */
export function replyEvent(
  deps: KeyLoopDeps,
  memory: KeyMemory,
  run: CurrentRun,
  reply: Reply,
): EventFactory | undefined {
  if (memory.run !== run || memory.state.stored?.record.seq !== run.seq || !memory.hasActiveRun) return undefined;
  const { clock, reporter, uncalled } = deps;
  if (reply.kind !== 'notCalled') uncalled.forget(memory);
  switch (reply.kind) {
    case 'outcome':
      return outcomeEvent(deps, run, reply.outcome);
    case 'accepted': {
      const remainingMs = memory.remainingMs(clock.monotonic());
      const heartbeatTimeoutMs = Math.max(
        minHeartbeatTimeoutMs,
        Math.min(reply.heartbeatTimeoutMs ?? run.registration.heartbeatTimeoutMs, remainingMs),
      );
      return ({ inputs }) => ({ kind: 'accepted', heartbeatTimeoutMs, inputs });
    }
    case 'notAccepted': {
      const { code, message, retryAfterMs } = reply;
      const probeDelayMs = deps.probeDelayMs(memory.key.component, retryAfterMs);
      return ({ inputs }) => ({ kind: 'notAccepted', code, message, retryAfterMs, probeDelayMs, inputs });
    }
    case 'notCalled': {
      reporter.startFailed(memory.key, reply.message);
      uncalled.failed(memory);
      // The circuit breaker ignores such a call, so this backoff limits the retries.
      const retryAfterMs = Math.max(reply.retryAfterMs ?? 0, uncalled.delayMs(memory));
      return ({ inputs }) => ({ kind: 'notCalled', retryAfterMs, inputs });
    }
    case 'failed': {
      const { code, message } = reply;
      return ({ inputs }) => ({ kind: 'callFailed', code, message, inputs });
    }
  }
}

/**
 * The event for an outcome, without outputs that the entry has. For NotReady, says whether the
 * missing inputs held at the start (false if another process started the run), and hold now.
 */
export function outcomeEvent(
  { snapshots, outputWriter }: Pick<KeyLoopDeps, 'snapshots' | 'outputWriter'>,
  run: CurrentRun | undefined,
  outcome: Outcome,
): EventFactory {
  const seq = run?.seq ?? 0;
  return (snapshot) => {
    const event = {
      kind: 'outcome',
      seq,
      outcome: outputWriter.withoutUnchanged(snapshot.entry, outcome),
      inputs: snapshot.inputs,
    } as const;
    if (outcome.outcome !== 'NotReady') return event;
    const { missing } = outcome;
    const heldAtStart = run?.snapshot !== undefined && snapshots.holds(run.snapshot, missing);
    return { ...event, missing: { heldAtStart, holdsNow: snapshots.holds(snapshot, missing) } };
  };
}

function requestOf(
  { api, callbackUrl, clock }: Pick<KeyLoopDeps, 'api' | 'callbackUrl' | 'clock'>,
  entry: Entry,
  record: RunRecord,
  token: IssuedToken,
  timeoutMs: number,
): ReconcileRequest {
  const { namespace, name, uid } = entry.ref;
  const { group, version, plural } = clusterInventories;
  const id = runId({ entryUid: uid, component: record.component }, record.seq);
  return {
    protocol: 'v1',
    run: {
      id,
      seq: record.seq,
      attempt: record.attempt,
      deadline: formatMicroTime(clock.now() + timeoutMs),
      reasons: [...record.reasons],
    },
    operation: record.operation,
    component: record.component,
    entry: {
      url: `${api.url.replace(/\/+$/, '')}/apis/${group}/${version}/namespaces/${namespace}/${plural}/${name}`,
      id: uid,
      resourceVersion: entry.resourceVersion,
    },
    auth: {
      token: token.token,
      expires: formatTime(token.expiresAtMs),
      ...(api.ca === undefined ? {} : { ca: api.ca }),
    },
    callback: `${callbackUrl}${callbackPath}${id}`,
  };
}
