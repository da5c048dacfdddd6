import { readOutcome } from '../../api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { aborted, withDeadline } from '../../kit/promises.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { readRunId } from '../key.ts';
import type { Component } from '../ports/component.ts';
import type { ComponentClient, Reply } from '../ports/component-client.ts';
import type { ReportSink } from '../ports/report-sink.ts';
import type { Registration } from '../registration.ts';
import { credentialIdOf } from './credential-id.ts';
import { type FirstAnswer, Run, type RunDoors } from './run.ts';

/** Of an answer, bytes of its JSON. */
const MAX_ANSWER_BYTES = 131_072;

export interface InProcessOptions {
  /** By name, as `endpoint.inProcess` names them. */
  readonly components: ReadonlyMap<string, Component>;
  readonly entry: RunDoors['entry'];
  /** Reports go there as if they had come by the callback. */
  readonly reports: ReportSink;
  readonly clock: Clock;
}

/** Calls components of this process by the contract: what they answer is trusted no more than what comes over the network. */
export function inProcessClient({ components, entry, reports, clock }: InProcessOptions): ComponentClient {
  const report: RunDoors['report'] = (request, token, body) => {
    const run = readRunId(request.run.id);
    const credentialId = credentialIdOf(token);
    if (run && credentialId) return reports.report(run, credentialId, asJson(body));
    return Promise.resolve({ status: 403, code: 'ForeignCredential', message: 'the token names no credential' });
  };
  return {
    async invoke(registration, request, signal) {
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

async function settle(
  run: Run,
  { timeoutMs }: Registration,
  request: ReconcileRequest,
  signal: AbortSignal,
  clock: Clock,
): Promise<Reply> {
  try {
    const first = await withDeadline(clock, timeoutMs, Promise.race([run.answer, aborted(signal)]));
    if (first) return replyTo(first, request);
  } catch {
    run.abandon(`no answer within ${timeoutMs} ms`);
    return { kind: 'broken', code: 'Timeout', message: `no answer within ${timeoutMs} ms` };
  }
  run.abandon('the call was given up');
  throw signal.reason;
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
