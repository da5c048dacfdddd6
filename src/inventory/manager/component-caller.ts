import { backoffMs } from '../../kit/backoff.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Facts } from '../core/facts.ts';
import type { ActiveRun, Answer } from '../core/memory.ts';
import { callSlackMs, isLivelock, withStart } from '../core/timing.ts';
import { type Trigger, triggerReasons } from '../core/triggers.ts';
import type { ComponentClient, Reply } from '../ports.ts';
import type { Breakers } from './breakers.ts';
import { type Addresses, requestOf } from './component-request.ts';
import type { KeyMemory, Memories } from './memories.ts';
import type { RunReporter } from './run-reporter.ts';

interface ComponentCallerDeps {
  /** Aborts when leadership ends. */
  readonly signal: AbortSignal;
  readonly components: ComponentClient;
  readonly memories: Memories;
  readonly breakers: Breakers;
  readonly reporter: RunReporter;
  readonly addresses: Addresses;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Minimum heartbeat timeout after a 202, milliseconds. */
const minHeartbeatTimeoutMs = 1000;
/** After a failed step, and after a call that the server could not make. */
export const backoff = { baseMs: 200, capMs: 30_000 };

/** Calls the component of a run whose start is stored, and keeps its answer in the memory. */
export class ComponentCaller {
  readonly #deps: ComponentCallerDeps;

  constructor(deps: ComponentCallerDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves once the call is answered, to the memory that the key has then; undefined if leadership
   * ended, or the entry is gone. Rejects only for a bug.
   */
  async call(facts: Facts, memory: KeyMemory): Promise<KeyMemory | undefined> {
    const { components, memories, clock, signal, addresses, reporter } = this.#deps;
    const { entry, stored, nowMs, monotonicMs } = facts;
    const { run } = memory;
    if (!run?.token || !stored) throw new Error('a run without its start was to be called');
    run.isUncalled = false;
    run.startedAt = monotonicMs;
    run.deadlineAt = monotonicMs + run.registration.timeoutMs + callSlackMs;
    memory.lastStart = monotonicMs;
    memory.recentStarts = withStart(memory.recentStarts, stored.record.inputsDigest ?? '', monotonicMs);
    this.#noteLivelock(facts, memory, run.start?.triggers ?? []);
    if (memory.oldest) reporter.dispatched(stored.record, memory.oldest.lane, monotonicMs - memory.oldest.since);
    memory.oldest = undefined;
    memories.setCalling(memory, true);
    const request = requestOf(addresses, entry, stored.record, run.token, nowMs + run.registration.timeoutMs);
    const reply = await components.invoke(run.registration, request, signal).catch((error: unknown) => {
      if (signal.aborted) return undefined;
      const message = `the server failed to call the component: ${describe(error)}; report this error to the maintainers with the log of the server`;
      return { kind: 'failed', code: 'Crashed', message } as const;
    });
    memories.setCalling(memory, false);
    // A report may have ended the run.
    if (reply && memory.run === run && run.answer === undefined)
      run.answer = this.#answerOf(memory, run, reply, clock.monotonic());
    return reply && memories.get(memory.text);
  }

  #answerOf(memory: KeyMemory, run: ActiveRun, reply: Reply, monotonicMs: number): Answer {
    const { breakers, reporter, random } = this.#deps;
    const { component } = memory.key;
    const uncalledBefore = memory.uncalled;
    memory.uncalled = reply.kind === 'notCalled' ? uncalledBefore + 1 : 0;
    switch (reply.kind) {
      case 'notCalled': {
        reporter.notCalled(memory.key, reply.message);
        // The circuit breaker ignores such a call, so this backoff limits the retries.
        const delayMs = backoffMs({ ...backoff, attempt: uncalledBefore, random });
        return { kind: 'notCalled', retryAfterMs: Math.max(reply.retryAfterMs ?? 0, delayMs) };
      }
      case 'notAccepted': {
        const { code, message, retryAfterMs } = reply;
        const probeDelayMs = breakers.probeDelayMs(component, retryAfterMs);
        breakers.record(component, 'failed', retryAfterMs, { code, message });
        return { kind: 'notAccepted', code, message, retryAfterMs, probeDelayMs };
      }
      case 'accepted': {
        breakers.record(component, 'answered', undefined);
        const { heartbeatTimeoutMs, maxRunMs } = run.registration;
        const remainingMs = run.startedAt + maxRunMs - monotonicMs;
        const wantedMs = Math.min(reply.heartbeatTimeoutMs ?? heartbeatTimeoutMs, remainingMs);
        return { kind: 'accepted', heartbeatTimeoutMs: Math.max(minHeartbeatTimeoutMs, wantedMs) };
      }
      default:
        // A timeout counts as an answer, too.
        breakers.record(component, 'answered', undefined);
        return reply;
    }
  }

  /** Warns if the start began a livelock. */
  #noteLivelock({ nowMs, monotonicMs, entry }: Facts, memory: KeyMemory, triggers: readonly Trigger[]): void {
    const isLooping = isLivelock(memory.recentStarts, monotonicMs);
    if (isLooping === (memory.livelock !== undefined)) return;
    const { reporter } = this.#deps;
    memory.livelock = isLooping ? livelockMessage(triggers, nowMs) : undefined;
    if (memory.livelock) reporter.warn(entry, memory.key, 'Livelock', memory.livelock);
    reporter.statusChanged(memory.key);
  }
}

/** Has the time, because the message stays until a later run starts. */
function livelockMessage(triggers: readonly Trigger[], nowMs: number): string {
  // A watched object is no input, so it did not cause the livelock.
  const changes = triggers.flatMap(({ reason, detail }) =>
    detail === undefined || reason === triggerReasons.remote ? [] : [detail],
  );
  const found = `the same inputs started more than 5 runs in the 10 minutes before ${formatTime(nowMs)}`;
  const remedy = 'check which component or user changes these inputs back and forth';
  if (changes.length === 0) return `${found}; ${remedy}`;
  return `${found}; changes of ${changes.join(', ')} started the last of them; ${remedy}`;
}
