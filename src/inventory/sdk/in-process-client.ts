import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { credentialIdOf } from '../accounts/tokens.ts';
import { parseRunId } from '../key.ts';
import type { Component, ComponentClient, Reply, ReportSink } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { acceptedReply, outcomeReply } from '../reply.ts';
import { type FirstAnswer, Run, type RunTransports } from './run.ts';

/** Characters of its JSON. */
const MAX_OUTCOME_LENGTH = 131_072;

interface InProcessOptions {
  /** By the name that `endpoint.inProcess` uses. */
  readonly components: ReadonlyMap<string, Component>;
  readonly openEntry: RunTransports['openEntry'];
  /** As if they came from the callback listener. */
  readonly reports: Pick<ReportSink, 'report'>;
  readonly clock: Clock;
}

/** Calls components in this process by the HTTP contract. */
export function inProcessClient({ components, openEntry, reports, clock }: InProcessOptions): ComponentClient {
  const report: RunTransports['report'] = async (request, token, body) => {
    const run = parseRunId(request.run.id);
    if (run) return reports.report(run, credentialIdOf(token), throughJson(body));
    return { status: 400, code: 'InvalidReport', message: `the run of the call, ${request.run.id}, is not a run ID` };
  };
  return {
    invoke: async (registration, request, signal) => {
      const name = registration.endpoint.inProcess ?? '';
      const component = components.get(name);
      if (!component) {
        const message = `no component ${name} is built into this server; set endpoint.inProcess to one of: ${[...components.keys()].sort().join(', ')}`;
        return { kind: 'notAccepted', code: 'Unreachable', message };
      }
      const run = new Run(component, request, { openEntry, report }, clock);
      void run.execute();
      return firstReply(run, registration, request, signal, clock);
    },
  };
}

/** `Timeout` after `timeoutMs`. Rejects with the reason of `signal`. */
function firstReply(
  run: Run,
  { timeoutMs }: Registration,
  request: ReconcileRequest,
  signal: AbortSignal,
  clock: Clock,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const settle = (settlement: () => void): void => {
      cancel();
      signal.removeEventListener('abort', onAbort);
      settlement();
    };
    const onAbort = (): void => {
      run.abandon('the server canceled the call');
      settle(() => reject(signal.reason));
    };
    const cancel = clock.schedule(timeoutMs, () => {
      const message = `no answer within ${timeoutMs} ms; for longer work, call heartbeat in the component, or increase timeoutSeconds of its registration`;
      run.abandon(message);
      settle(() => resolve({ kind: 'failed', code: 'Timeout', message }));
    });
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort);
    run.answer.then((first) => settle(() => resolve(replyTo(first, request))), reject);
  });
}

function replyTo(first: FirstAnswer, request: ReconcileRequest): Reply {
  if (first.kind === 'accepted') return acceptedReply({ leaseSeconds: first.leaseSeconds });
  let body: unknown;
  try {
    body = throughJson(first.outcome);
  } catch (error) {
    const message = `the outcome cannot be sent as JSON: ${describe(error)}; correct the component`;
    return { kind: 'failed', code: 'NotJson', message };
  }
  const { length } = JSON.stringify(body);
  if (length > MAX_OUTCOME_LENGTH) {
    const message = `the outcome has ${length} characters of JSON; at most ${MAX_OUTCOME_LENGTH} are allowed; return less, for example smaller outputs`;
    return { kind: 'failed', code: 'TooLarge', message };
  }
  return outcomeReply(body, request);
}

/** As over HTTP. Throws if the value has no JSON form, or exceeds the limits of `parseJson`. */
const throughJson = (value: unknown): unknown => parseJson(Buffer.from(JSON.stringify(value) ?? '', 'utf8'));
