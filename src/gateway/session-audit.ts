import { createHash } from 'node:crypto';
import { gatewayGroup, gatewayVersion } from '../api/gateway/names.ts';
import type { Journal } from '../audit/journal.ts';
import type { AuditRecord } from '../audit/record.ts';
import { describe } from '../kit/errors.ts';
import type { Log } from '../observe/log.ts';
import type { Refusal } from './answers.ts';
import type { Caller } from './caller.ts';
import type { LiveGrant } from './live-grants.ts';
import type { StreamDecision } from './pod-call.ts';
import type { RecordingName } from './recording/sink.ts';
import type { Session } from './sessions.ts';
import type { StreamResult } from './stream.ts';

/** A call by a known user of a known grant. */
export interface AuditedCall {
  readonly caller: Caller;
  readonly grant: LiveGrant;
}

/** Who wants to see an open session, or a recording. */
export interface ViewCall {
  readonly caller: Caller;
  readonly kind: 'session' | 'recording';
  readonly name: RecordingName;
}

export type SessionRecord = Omit<AuditRecord, 'verdict'>;

/** Writes the audit lines of sessions, and of views of sessions and recordings. */
export class SessionAudit {
  readonly #journal: Journal;
  readonly #log: Log;

  constructor(journal: Journal, log: Log) {
    this.#journal = journal;
    this.#log = log;
  }

  /** A line that cannot be written is logged as an error; the call stays refused. Never rejects. */
  async denied({ caller, grant }: AuditedCall, { code, message }: Refusal): Promise<void> {
    const line: AuditRecord = {
      event: 'session',
      verdict: 'denied',
      ...subjectOf({ caller, grant }),
      request: grant.request.name,
      pod: grant.pod,
      code,
      message,
    };
    await this.#appendOrLog(line, 'no audit line for a refused call');
  }

  /** Rejects if the line cannot be written; then the caller must not open the session. */
  async opened(record: SessionRecord): Promise<void> {
    await this.#journal.append({ ...record, verdict: 'opened' });
  }

  /** A line that cannot be written is logged, and the journal counts it as lost. Never rejects. */
  async ended(record: SessionRecord, { end, ...result }: Partial<StreamResult>): Promise<void> {
    const line: AuditRecord = {
      ...record,
      verdict: 'ended',
      ...(end ? { code: end.code } : {}),
      ...(result.bytesIn === undefined ? {} : { bytesIn: result.bytesIn, bytesOut: result.bytesOut }),
      ...(result.exitCode === undefined ? {} : { exitCode: result.exitCode }),
    };
    await this.#appendOrLog(line, 'no audit line for the end of a session');
  }

  /** Rejects if the line cannot be written; then the caller must show nothing. */
  async viewed(call: ViewCall, session?: Pick<SessionRecord, 'request' | 'pod'>): Promise<void> {
    await this.#journal.append({ ...viewLine(call, session), verdict: 'viewed' });
  }

  /** A line that cannot be written is logged as an error. Never rejects. */
  async viewDenied(call: ViewCall, { code, message }: Refusal): Promise<void> {
    const line: AuditRecord = { ...viewLine(call), verdict: 'denied', code, message };
    await this.#appendOrLog(line, 'no audit line for a refused view');
  }

  async #appendOrLog(line: AuditRecord, failure: string): Promise<void> {
    await this.#journal.append(line).catch((error: unknown) => {
      const { session, request, what } = line;
      this.#log.error(failure, { namespace: what.namespace, session, request, error: describe(error) });
    });
  }
}

/** Has the hash of the command, not the command, which may contain secrets. */
export function sessionRecord(call: AuditedCall, { stream, options }: StreamDecision, { id }: Session): SessionRecord {
  const { command, container, stdin, tty } = options;
  const { grant } = call;
  return {
    event: 'session',
    ...subjectOf(call),
    session: id,
    stream,
    request: grant.request.name,
    pod: grant.pod,
    interactive: stdin && tty,
    ...(container === undefined ? {} : { container }),
    ...(command.length === 0
      ? {}
      : { commandHash: createHash('sha256').update(JSON.stringify(command)).digest('hex') }),
  };
}

function viewLine({ caller, kind, name }: ViewCall, { request, pod }: Partial<SessionRecord> = {}): SessionRecord {
  return {
    event: 'session',
    who: whoOf(caller),
    what: {
      operation: 'GET',
      apiVersion: `${gatewayGroup}/${gatewayVersion}`,
      kind: kind === 'session' ? 'Session' : 'Recording',
      namespace: name.namespace,
      name: name.session,
    },
    session: name.session,
    ...(request === undefined ? {} : { request }),
    ...(pod === undefined ? {} : { pod }),
  };
}

const whoOf = ({ username, uid, groups }: Caller): AuditRecord['who'] => ({ user: username, uid, groups });

const subjectOf = ({ caller, grant }: AuditedCall): Pick<AuditRecord, 'who' | 'what'> => ({
  who: whoOf(caller),
  what: { operation: 'CONNECT', apiVersion: 'v1', kind: 'Pod', namespace: grant.namespace, name: grant.pod },
});
