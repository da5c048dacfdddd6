import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { type Refusal, refusalIn, switchingProtocols } from './answers.ts';
import { LiveSession, type LiveViews } from './live-views.ts';
import { type StreamDecision, type StreamKind, streamProtocols } from './pod-call.ts';
import type { Recorder, Recording } from './recording/recorder.ts';
import { SessionCast } from './recording/session-cast.ts';
import { type AuditedCall, type SessionAudit, type SessionRecord, sessionRecord } from './session-audit.ts';
import type { SessionObjects } from './session-objects.ts';
import { type Session, type Sessions, tooManySessions } from './sessions.ts';
import { PodStream, type StreamResult } from './stream.ts';
import { endsAccess, endText, type StreamEnd, sessionEndText } from './stream-end.ts';
import type { Answer, Upstream } from './upstream.ts';

interface SessionOpeningDeps {
  readonly sessions: Sessions;
  readonly upstream: Pick<Upstream, 'open'>;
  readonly recorder: Pick<Recorder, 'begin'>;
  readonly objects: Pick<SessionObjects, 'begin' | 'end'>;
  readonly views: Pick<LiveViews, 'begin'>;
  readonly audit: SessionAudit;
  readonly clock: Clock;
}

interface UpgradeCall {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that came with the call. */
  readonly head: Buffer;
}

/**
 * Opens streams. Before the first byte passes, it creates the AccessSession, writes the audit line,
 * and starts the recording that the grant asks for.
 */
export class SessionOpening {
  readonly #deps: SessionOpeningDeps;

  constructor(deps: SessionOpeningDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves to nothing once the stream is open, or to a refusal that the caller must send. Rejects
   * if the API server cannot be called. Opens nothing for a client that has left.
   */
  async open(
    { request, socket, head }: UpgradeCall,
    call: AuditedCall,
    decision: StreamDecision,
  ): Promise<Refusal | undefined> {
    const { sessions, objects, upstream, views, audit, clock } = this.#deps;
    const { grant } = call;
    const { stream: kind, options, target } = decision;
    const offered = String(request.headers['sec-websocket-protocol'] ?? '').split(',');
    const protocols = offered.map((name) => name.trim()).filter((name) => streamProtocols[kind].includes(name));
    if (protocols.length === 0) {
      const refusal = unknownProtocol(offered, kind);
      await audit.denied(call, refusal);
      return refusal;
    }
    const session = sessions.countStream(grant) ? sessions.begin(grant) : undefined;
    if (!session) {
      await audit.denied(call, tooManySessions);
      return tooManySessions;
    }
    let recording: Recording | undefined;
    const close = (): void => {
      session.close();
      // Without the AccessSession, another replica may delete the recording before it is complete.
      void Promise.resolve(recording?.end()).finally(() => objects.end(grant.namespace, session));
    };
    const abort = new AbortController();
    const abandon = (): void => {
      abort.abort();
      close();
    };
    socket.once('close', abandon);
    const record = sessionRecord(call, decision, session);
    const cast = kind === 'portforward' ? undefined : new SessionCast(clock, grant.recording?.withInput ?? false);
    // Both must succeed first, because opening the stream starts the command.
    const [recorded, stored] = await Promise.allSettled([
      cast && this.#beginRecording(call, cast, session, record),
      objects.begin(call, decision, record, session),
    ]);
    if (recorded.status === 'fulfilled') recording = recorded.value;
    for (const step of [recorded, stored]) {
      if (step.status === 'fulfilled') continue;
      close();
      const refusal = unavailable(step.reason);
      await audit.denied(call, refusal);
      return refusal;
    }
    try {
      // No byte may pass before the audit line is written.
      await audit.opened(record);
    } catch (error) {
      close();
      return { status: 503, code: 'AuditUnavailable', message: describe(error) };
    }
    const endViews = views.begin(new LiveSession({ namespace: grant.namespace, session: session.id }, cast, record));
    const closed = (result: Partial<StreamResult>): void => {
      close();
      endViews(sessionEndText(result));
      void audit.ended(record, result);
    };
    const refused = (end: StreamEnd): Refusal => {
      closed({ end });
      return { status: endsAccess(end.code) ? 403 : 503, code: end.code, message: endText(end) };
    };
    // The access may have ended since the call was checked, or end before the API server answers.
    const end = session.ending();
    if (end) return refused(end);
    session.attach({ end: () => abort.abort(), warn: () => {} });
    let answer: Answer;
    try {
      const headers = { ...request.headers, 'sec-websocket-protocol': protocols.join(', ') };
      answer = await upstream.open(target, { headers, upgrades: true, signal: abort.signal });
    } catch (error) {
      const end = session.ending();
      if (end) return refused(end);
      closed({});
      throw error;
    }
    if (answer.kind === 'response') {
      closed({});
      return refusalIn(answer.message);
    }
    const chosen = answer.headers['sec-websocket-protocol'] ?? '';
    if (!protocols.includes(chosen)) {
      answer.socket.destroy();
      closed({});
      return wrongProtocol(chosen, protocols);
    }
    socket.off('close', abandon);
    socket.write(switchingProtocols(answer.headers));
    const stream = new PodStream({
      kind,
      options,
      protocol: chosen,
      client: socket,
      clientHead: head,
      upstream: answer.socket,
      upstreamHead: answer.head,
      idleAfterMs: grant.idleAfterMs,
      clock,
      listener: cast,
      onClosed: closed,
    });
    stream.start();
    if (recording) {
      if (!recording.isLost) stream.warn('this session is recorded');
      if (grant.recording?.mode === 'Required')
        recording.whenLost(() => stream.end({ code: 'RecordingLost', atMs: clock.now() }));
    }
    session.attach(stream);
    return undefined;
  }

  /** Rejects with `RecorderUnavailable` if the grant requires a recording that cannot begin. */
  async #beginRecording(
    { grant }: AuditedCall,
    cast: SessionCast,
    { id }: Session,
    record: SessionRecord,
  ): Promise<Recording | undefined> {
    const { namespace, recording: terms } = grant;
    if (!terms) return undefined;
    const recording = this.#deps.recorder.begin({ namespace, id, cast, record });
    try {
      if (terms.mode === 'Required') await recording.durable;
    } catch (error) {
      await recording.end();
      throw error;
    }
    return recording;
  }
}

const unknownProtocol = (found: readonly string[], kind: StreamKind): Refusal => ({
  status: 400,
  code: 'WebSocketRequired',
  message: `the WebSocket has the subprotocol ${found.join(', ') || 'none'}; for ${kind}, the gateway passes ${streamProtocols[kind].join(' or ')}; use kubectl 1.31 or newer`,
});

const wrongProtocol = (chosen: string, offered: readonly string[]): Refusal => ({
  status: 502,
  code: 'GatewayFailed',
  message: `the API server chose the subprotocol ${chosen || 'none'}; the gateway offered ${offered.join(' or ')}; tell an administrator`,
});

const unavailable = (error: unknown): Refusal => ({
  status: 503,
  code: error instanceof CodedError ? error.code : 'InternalError',
  message: describe(error),
});
