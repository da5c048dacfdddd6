import { readOutcome } from '../../api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { credentialIdOf } from '../accounts/tokens.ts';
import { readRunId } from '../key.ts';
import type { Component, ComponentClient, Reply, ReportSink } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { type FirstAnswer, Run, type RunTransports } from './run.ts';

/** Of an answer, bytes of its JSON. */
const MAX_ANSWER_BYTES = 131_072;

interface InProcessOptions {
  /** By name, as `endpoint.inProcess` names them. */
  readonly components: ReadonlyMap<string, Component>;
  readonly entry: RunTransports['entry'];
  /** Reports go there as if they had come by the callback. */
  readonly reports: ReportSink;
  readonly clock: Clock;
}

/** Calls components of this process by the contract: what they answer is trusted no more than what comes over the network. */
export function inProcessClient({ components, entry, reports, clock }: InProcessOptions): ComponentClient {
  const report: RunTransports['report'] = async (request, token, body) => {
    const run = readRunId(request.run.id);
    if (run) return reports.report(run, credentialIdOf(token), asJson(body));
    return { status: 400, code: 'InvalidReport', message: `${request.run.id} is no id of a run` };
  };
  return {
    invoke: async (registration, request, signal) => {
      const name = registration.endpoint.inProcess ?? '';
      const component = components.get(name);
      if (!component) {
        const message = `no component ${name} is built into this server`;
        return { kind: 'notAccepted', code: 'Unreachable', message };
      }
      const run = new Run(component, request, { entry, report }, clock);
      void run.execute();
      return settle(run, registration, request, signal, clock);
    },
  };
}

/** Rejects with the reason of the signal, which may stand over any number of calls: nothing is left on it. */
function settle(
  run: Run,
  { timeoutMs }: Registration,
  request: ReconcileRequest,
  signal: AbortSignal,
  clock: Clock,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const end = (settled: () => void): void => {
      cancel();
      signal.removeEventListener('abort', onAbort);
      settled();
    };
    const onAbort = (): void => {
      run.abandon('the call was given up');
      end(() => reject(signal.reason));
    };
    const cancel = clock.schedule(timeoutMs, () => {
      const message = `no answer within ${timeoutMs} ms`;
      run.abandon(message);
      end(() => resolve({ kind: 'broken', code: 'Timeout', message }));
    });
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort);
    run.answer.then((first) => end(() => resolve(replyTo(first, request))), reject);
  });
}

function replyTo(first: FirstAnswer, { run, operation }: ReconcileRequest): Reply {
  if (first.kind === 'accepted') {
    const { leaseSeconds } = first;
    return { kind: 'accepted', leaseMs: leaseSeconds === undefined ? undefined : leaseSeconds * 1000 };
  }
  let body: unknown;
  try {
    body = asJson(first.outcome);
  } catch (error) {
    return { kind: 'broken', code: 'NotJson', message: describe(error) };
  }
  if (JSON.stringify(body).length > MAX_ANSWER_BYTES) {
    return { kind: 'broken', code: 'TooLarge', message: `the outcome is larger than ${MAX_ANSWER_BYTES} bytes` };
  }
  const read = readOutcome(body, { id: run.id, operation });
  if (read.ok) return { kind: 'outcome', outcome: read.value };
  const message = read.errors.map(({ field, message }) => `${field || 'the outcome'} ${message}`).join('; ');
  return { kind: 'broken', code: 'InvalidOutcome', message };
}

/** What would be left of it on the wire. Throws for what has no JSON. */
const asJson = (value: unknown): unknown => parseJson(Buffer.from(JSON.stringify(value) ?? '', 'utf8'));
