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

/** Maximum size of an outcome, in characters of its JSON. */
const MAX_OUTCOME_LENGTH = 131_072;

interface InProcessOptions {
  /** Components by the name that `endpoint.inProcess` uses. */
  readonly components: ReadonlyMap<string, Component>;
  readonly entry: RunTransports['entry'];
  /** Receives the reports as if they came from the callback listener. */
  readonly reports: ReportSink;
  readonly clock: Clock;
}

/** Calls components in this process by the contract. Validates their answers like those from the network. */
export function inProcessClient({ components, entry, reports, clock }: InProcessOptions): ComponentClient {
  const report: RunTransports['report'] = async (request, token, body) => {
    const run = readRunId(request.run.id);
    if (run) return reports.report(run, credentialIdOf(token), asJson(body));
    return { status: 400, code: 'InvalidReport', message: `${request.run.id} is not a run ID` };
  };
  return {
    invoke: async (registration, request, signal) => {
      const name = registration.endpoint.inProcess ?? '';
      const component = components.get(name);
      if (!component) {
        const message = `no component ${name} is built into this server; set endpoint.inProcess to one of: ${[...components.keys()].sort().join(', ')}`;
        return { kind: 'notAccepted', code: 'Unreachable', message };
      }
      const run = new Run(component, request, { entry, report }, clock);
      void run.execute();
      return settle(run, registration, request, signal, clock);
    },
  };
}

/** Resolves to the first answer of the run, or to a timeout. Rejects with the reason of the signal. */
function settle(
  run: Run,
  { timeoutMs }: Registration,
  request: ReconcileRequest,
  signal: AbortSignal,
  clock: Clock,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const settleWith = (settlement: () => void): void => {
      cancel();
      signal.removeEventListener('abort', onAbort);
      settlement();
    };
    const onAbort = (): void => {
      run.abandon('the server canceled the call');
      settleWith(() => reject(signal.reason));
    };
    const cancel = clock.schedule(timeoutMs, () => {
      const message = `no answer within ${timeoutMs} ms`;
      run.abandon(message);
      settleWith(() => resolve({ kind: 'failed', code: 'Timeout', message }));
    });
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort);
    run.answer.then((first) => settleWith(() => resolve(replyTo(first, request))), reject);
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
    return { kind: 'failed', code: 'NotJson', message: describe(error) };
  }
  if (JSON.stringify(body).length > MAX_OUTCOME_LENGTH) {
    return {
      kind: 'failed',
      code: 'TooLarge',
      message: `the outcome is too large; at most ${MAX_OUTCOME_LENGTH} characters of JSON are allowed`,
    };
  }
  const read = readOutcome(body, { id: run.id, operation });
  if (read.ok) return { kind: 'outcome', outcome: read.value };
  const message = read.errors.map(({ field, message }) => `${field || 'the outcome'} ${message}`).join('; ');
  return { kind: 'failed', code: 'InvalidOutcome', message };
}

/** The value after JSON serialization. Throws if the value has no JSON form. */
const asJson = (value: unknown): unknown => parseJson(Buffer.from(JSON.stringify(value) ?? '', 'utf8'));
