import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import type { Store } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { type Refusal, refuse, refuseUpgrade, relay } from './answers.ts';
import { type GatewayCall, readCall } from './call-path.ts';
import { readCaller } from './caller.ts';
import { apiDocument, podDocument } from './discovery.ts';
import { type FrontProxy, frontProxyOf, frontProxyProblem, isApiServer } from './front-proxy.ts';
import type { LiveGrant, LiveGrants } from './live-grants.ts';
import { isPeerPath, type Peers } from './peers.ts';
import {
  type Decision,
  decide,
  isDocument,
  isRepeat,
  isSubject,
  type ProxyCall,
  type StreamKind,
  webSocketStream,
} from './pod-call.ts';
import { refuseStream } from './refused-stream.ts';
import type { AuditedCall, SessionAudit, ViewCall } from './session-audit.ts';
import type { SessionOpening } from './session-opening.ts';
import { type Sessions, tooManySessions } from './sessions.ts';
import { endText } from './stream-end.ts';
import type { Upstream } from './upstream.ts';
import type { ViewHandler } from './view-handler.ts';

/** How long a client may take to read the end of a log. */
const LOG_END_MS = 1000;

interface GatewayDeps {
  readonly frontProxy: Store<FrontProxy>;
  readonly grants: LiveGrants;
  readonly sessions: Sessions;
  readonly upstream: Pick<Upstream, 'open'>;
  readonly opening: Pick<SessionOpening, 'open'>;
  readonly viewHandler: Pick<ViewHandler, 'answer'>;
  readonly peers: Pick<Peers, 'answer'>;
  readonly audit: SessionAudit;
  readonly clock: Clock;
  readonly log: Log;
}

/** A refusal gets an audit line only if `audit` names its user and its grant. */
type Outcome =
  | { readonly kind: 'document'; readonly contentType: string; readonly body: unknown }
  | {
      readonly kind: 'refusal';
      readonly refusal: Refusal;
      readonly audit?: AuditedCall;
      /** What the caller asked for with a WebSocket. */
      readonly stream?: StreamKind | undefined;
    }
  | { readonly kind: 'view'; readonly view: ViewCall }
  | ({ readonly kind: 'forward' } & AuditedCall & Forwarded);

type Forwarded = { readonly decision: Extract<Decision, { kind: 'read' | 'stream' }> };

/**
 * The aggregated API. Each call must come from the API server, which proves itself with its
 * front-proxy certificate (`/peer/`: from another replica). Below a grant, the user must be a
 * subject of the open grant; the gateway forwards what the grant permits on its one pod,
 * and `GET /version`. Any user reads discovery documents. The API server authorizes who sees
 * sessions and recordings.
 */
export class Gateway {
  readonly #deps: GatewayDeps;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  /** For calls without an upgrade. Never rejects. */
  async onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let outcome: Outcome | undefined;
    try {
      if (isPeerPath(request.url)) return this.#deps.peers.answer(request, response);
      outcome = await this.#decide(request, response);
      if (!outcome) return;
      if (outcome.kind === 'document') {
        response.writeHead(200, { 'content-type': outcome.contentType });
        response.end(JSON.stringify(outcome.body));
      } else if (outcome.kind === 'refusal') {
        if (outcome.audit) await this.#deps.audit.denied(outcome.audit, outcome.refusal);
        refuse(response, outcome.refusal);
      } else if (outcome.kind === 'view') {
        await this.#deps.viewHandler.answer(outcome.view, response);
      } else if (outcome.decision.kind === 'read') {
        await this.#read(request, response, outcome, outcome.decision);
      }
    } catch (error) {
      this.#deps.log.warn('a call of a user failed', { ...objectOf(outcome), error: describe(error) });
      if (response.headersSent) response.destroy();
      else refuse(response, unreachable(error));
    }
  }

  /** Never rejects. */
  async onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => {});
    let outcome: Outcome | undefined;
    try {
      outcome = await this.#decide(request, socket);
      if (!outcome) return;
      if (outcome.kind === 'forward' && outcome.decision.kind === 'stream') {
        const refusal = await this.#deps.opening
          .open({ request, socket, head }, outcome, outcome.decision)
          .catch((error: unknown) => this.#unreachable(error, outcome));
        if (refusal) refuseStream(request, socket, outcome.decision.stream, refusal);
        return;
      }
      if (outcome.kind !== 'refusal') return refuseUpgrade(socket, noUpgrade);
      if (outcome.audit) await this.#deps.audit.denied(outcome.audit, outcome.refusal);
      if (outcome.stream) refuseStream(request, socket, outcome.stream, outcome.refusal);
      else refuseUpgrade(socket, outcome.refusal);
    } catch (error) {
      refuseUpgrade(socket, this.#unreachable(error, outcome));
    }
  }

  /** `connection`: where the answer goes. Decides nothing if the client closed it meanwhile. */
  async #decide(request: IncomingMessage, connection: ServerResponse | Duplex): Promise<Outcome | undefined> {
    const { frontProxy } = this.#deps;
    const settings = frontProxyOf(frontProxy);
    const problem = frontProxyProblem(frontProxy);
    if (!settings || problem !== undefined) return refusalOf(503, 'FrontProxyUntrusted', problem ?? '');
    const { socket, method = '', headers } = request;
    if (!(socket instanceof TLSSocket) || !isApiServer(socket, settings))
      return { kind: 'refusal', refusal: notApiServer };
    const caller = readCaller(request, settings.headers);
    if (!caller) return { kind: 'refusal', refusal: noUser };
    const call = readCall(request.url ?? '');
    if (!call) return { kind: 'refusal', refusal: unknownPath };
    const accept = headers.accept ?? '';
    if (call.kind === 'document') return documentOutcome(method === 'GET' ? apiDocument(call.path, accept) : undefined);
    if (call.kind !== 'proxy') {
      return method === 'GET' ? { kind: 'view', view: { caller, ...call } } : { kind: 'refusal', refusal: onlyGet };
    }
    const proxyCall = proxyCallOf(call, method, headers.upgrade);
    // Even without a grant: a client reads these first, and shows why only its later calls fail.
    if (isDocument(proxyCall)) return documentOutcome(podDocument(proxyCall.path, accept));
    const stream = webSocketStream(proxyCall);
    const grant = await this.#findGrant(call, connection);
    if (!grant) return undefined;
    if ('status' in grant) return { kind: 'refusal', refusal: grant, stream };
    if (!isSubject(grant, caller)) {
      const message = `grant ${grant.name} was given to ${subjectsText(grant)}; you are ${caller.username}; create a request of your own`;
      const refusal: Refusal = { status: 403, code: 'NoGrant', message };
      return { kind: 'refusal', refusal, stream, audit: { caller, grant } };
    }
    const decision = decide(proxyCall, grant);
    if (decision.kind === 'refusal') {
      const { refusal } = decision;
      // kubectl repeats a refused WebSocket by SPDY. The journal already has the first call.
      if (refusal.code === 'WebSocketRequired' && isRepeat(proxyCall)) return { kind: 'refusal', refusal };
      return { kind: 'refusal', refusal, stream, audit: { caller, grant } };
    }
    if (decision.kind === 'document') return documentOutcome(podDocument(proxyCall.path, accept));
    return { kind: 'forward', caller, grant, decision };
  }

  /** Nothing if the client has left: its `close` has passed and would end no stream. */
  async #findGrant(
    { namespace, grant }: Extract<GatewayCall, { kind: 'proxy' }>,
    connection: ServerResponse | Duplex,
  ): Promise<LiveGrant | Refusal | undefined> {
    const left = new AbortController();
    const onClose = (): void => left.abort();
    connection.once('close', onClose);
    try {
      const found = await this.#deps.grants.findOrWait(namespace, grant, left.signal).catch((error: unknown) => {
        if (!left.signal.aborted) throw error;
      });
      return connection.destroyed ? undefined : (found ?? undefined);
    } finally {
      connection.off('close', onClose);
    }
  }

  #unreachable(error: unknown, outcome: Outcome | undefined): Refusal {
    this.#deps.log.warn('a session could not be opened', { ...objectOf(outcome), error: describe(error) });
    return unreachable(error);
  }

  async #read(
    request: IncomingMessage,
    response: ServerResponse,
    { grant }: AuditedCall,
    { target, follows }: Extract<Decision, { kind: 'read' }>,
  ): Promise<void> {
    const abort = new AbortController();
    const session = this.#deps.sessions.begin(grant);
    if (!session) return refuse(response, tooManySessions);
    response.on('close', () => {
      session.close();
      abort.abort();
    });
    const answer = await this.#deps.upstream.open(target, {
      headers: request.headers,
      upgrades: false,
      signal: abort.signal,
    });
    if (answer.kind === 'upgraded') {
      answer.socket.destroy();
      throw new Error('the API server upgraded a call that asked for none');
    }
    const { message } = answer;
    relay(message, response);
    session.attach({
      warn: () => {},
      end: (end) => {
        message.unpipe(response);
        if (!follows || !target.includes('/log') || response.writableEnded) {
          response.destroy();
          return;
        }
        // A regular end would look like the end of the log.
        response.write(`\n[drawbridge] ${endText(end)}\n`, () => response.destroy());
        this.#deps.clock.schedule(LOG_END_MS, () => response.destroy());
      },
    });
  }
}

const proxyCallOf = (
  { path, query }: Extract<GatewayCall, { kind: 'proxy' }>,
  method: string,
  upgrade: string | undefined,
): ProxyCall => ({ method, path, query, upgrade: upgrade?.toLowerCase() });

const documentOutcome = (document: ReturnType<typeof apiDocument>): Outcome =>
  document ? { kind: 'document', ...document } : { kind: 'refusal', refusal: unknownPath };

/** Fields for the log. */
function objectOf(outcome: Outcome | undefined): Readonly<Record<string, string>> {
  if (outcome?.kind === 'view') return { ...outcome.view.name };
  return outcome?.kind === 'forward' ? { namespace: outcome.grant.namespace, grant: outcome.grant.name } : {};
}

const refusalOf = (status: Refusal['status'], code: string, message: string): Outcome => ({
  kind: 'refusal',
  refusal: { status, code, message },
});

const notApiServer: Refusal = {
  status: 401,
  code: 'NotApiServer',
  message:
    'the connection has no front-proxy certificate of the API server; only the API server may call the gateway; use kubectl, which calls the API server',
};
const noUser: Refusal = {
  status: 401,
  code: 'NoUser',
  message:
    'the call names no user or several, or its user name or its number of groups is too large; the API server must name one user with at most 1,024 characters, and at most 1,000 groups; check the groups of the user, and the --requestheader flags of the API server',
};
const unknownPath: Refusal = {
  status: 404,
  code: 'NotServed',
  message:
    'the gateway does not serve this path; it serves GET for discovery, and below namespaces/NAMESPACE: grants/GRANT/proxy/…, sessions/SESSION/log, and recordings/SESSION/log, without percent signs, backslashes, and empty segments; use kubectl drawbridge exec, or drawbridge sessions',
};
const onlyGet: Refusal = {
  status: 405,
  code: 'NotServed',
  message: 'sessions and recordings can only be read; use GET',
};
const noUpgrade: Refusal = {
  status: 400,
  code: 'NotServed',
  message: 'the call asks for an upgrade, and nothing at this path is a stream; call it without the header Upgrade',
};

const unreachable = (error: unknown): Refusal => ({
  status: 502,
  code: 'GatewayFailed',
  message: `the gateway could not complete the call to the API server: ${describe(error)}; try again`,
});

const subjectsText = ({ subjects }: LiveGrant): string => subjects.map(({ name }) => name).join(', ');
