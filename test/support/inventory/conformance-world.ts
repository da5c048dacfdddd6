import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { callAudience, clusterInventories } from '../../../src/api/inventory/names.ts';
import type { Operation } from '../../../src/api/inventory/reconcile-run.ts';
import { apiVersionOf } from '../../../src/api/object.ts';
import { own } from '../../../src/kit/json-value.ts';
import { closed, listening } from './components/processes.ts';

export const component = 'player';
export const serverAccount = 'system:serviceaccount:drawbridge-system:drawbridge-inventory';
export const reviewToken = 'of-the-component';

const entryUid = '11111111-2222-3333-4444-555555555555';
const entryPath = '/apis/inventory.drawbridge.dev/v1alpha1/namespaces/fleet/clusterinventories/rt-1';

/** A token in the format of API servers, without a valid signature. */
const tokenOf = (jti: string): string =>
  ['{}', JSON.stringify({ jti }), 'signature'].map((part) => Buffer.from(part).toString('base64url')).join('.');

/** Tokens of callers, by their TokenReview result. */
export const callers = {
  server: tokenOf('server'),
  otherUser: tokenOf('other-user'),
  otherAudience: tokenOf('other-audience'),
  forged: tokenOf('forged'),
} as const;

export interface Report {
  readonly token: string;
  readonly body: unknown;
}

/** A minimal API server and report listener for components, on loopback addresses. */
export class ConformanceWorld {
  readonly reports: Report[] = [];
  /** Requests to the API server with run tokens, as `METHOD path`. */
  readonly calls: string[] = [];
  /** Tokens that pass write authorization. */
  readonly live = new Set<string>();
  /** Overridden answers of the callback; each is used once. */
  readonly refusals: number[] = [];
  /** Token in the answers to heartbeats. */
  renewed: string | undefined;
  /** HTTP status for requests of entries. */
  outage: number | undefined;
  apiUrl = '';
  callbackUrl = '';
  readonly #api: Server = createServer((request, response) => this.#answer(request, response, this.#onApi));
  readonly #callbacks: Server = createServer((request, response) => this.#answer(request, response, this.#onReport));
  #entry: Record<string, unknown> = {};
  #seq = 0;

  async start(): Promise<void> {
    [this.apiUrl, this.callbackUrl] = await Promise.all([listening(this.#api), listening(this.#callbacks)]);
  }

  async close(): Promise<void> {
    await Promise.all([closed(this.#api), closed(this.#callbacks)]);
  }

  /** Resets the state. `config.play` of the entry selects the behavior of the component. */
  begin(play: string, value = 'something'): void {
    for (const list of [this.reports, this.calls, this.refusals]) list.length = 0;
    this.live.clear();
    this.renewed = undefined;
    this.outage = undefined;
    this.#entry = {
      apiVersion: apiVersionOf(clusterInventories),
      kind: clusterInventories.kind,
      metadata: { name: 'rt-1', namespace: 'fleet', uid: entryUid, resourceVersion: '7' },
      spec: { mode: 'managed', components: { [component]: { enabled: true, config: { play, value } } } },
    };
  }

  get status(): unknown {
    return this.#entry['status'];
  }

  request(operation: Operation = 'reconcile', changes: Partial<ReconcileRequest> = {}): ReconcileRequest {
    this.#seq += 1;
    const id = `${entryUid}.${component}.${this.#seq}`;
    const token = tokenOf(`run-${this.#seq}`);
    this.live.add(token);
    return {
      protocol: 'v1',
      run: { id, seq: this.#seq, attempt: 0, deadline: '2099-01-01T00:00:00Z', reasons: ['Created'] },
      operation,
      component,
      entry: { url: `${this.apiUrl}${entryPath}`, id: entryUid, resourceVersion: '7' },
      auth: { token, expires: '2099-01-01T00:00:00Z' },
      callback: `${this.callbackUrl}/v1/runs/${id}`,
      ...changes,
    };
  }

  /** Issues another credential of the run. */
  renew(): string {
    const token = tokenOf(`renewed-${this.#seq}`);
    this.live.add(token);
    this.renewed = token;
    return token;
  }

  /** Answers a report like the callback. */
  report(token: string, body: unknown): { readonly status: number; readonly body: unknown } {
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return { status: refusal, body: { code: 'Refused', message: 'not now' } };
    this.reports.push({ token, body });
    if (!this.live.has(token)) return { status: 403, body: { code: 'ForeignCredential', message: 'no' } };
    if (own(body, 'heartbeat') === undefined) return { status: 200, body: {} };
    const auth = this.renewed === undefined ? {} : { auth: { token: this.renewed, expires: '2099-01-01T00:00:00Z' } };
    return { status: 200, body: { leaseSeconds: 5, ...auth } };
  }

  readonly #onReport = (_: IncomingMessage, token: string, body: unknown) => this.report(token, body);

  readonly #onApi = ({ method = '', url = '' }: IncomingMessage, token: string, body: unknown) => {
    if (url === '/apis/authentication.k8s.io/v1/tokenreviews') return this.#review(token, body);
    this.calls.push(`${method} ${url}`);
    if (this.outage !== undefined) return failure(this.outage);
    if (!this.live.has(token)) return failure(401);
    if (method === 'GET' && url === entryPath) return { status: 200, body: this.#entry };
    if (method !== 'PATCH' || url !== `${entryPath}/status`) return failure(403);
    this.#entry['status'] = own(body, 'status');
    return { status: 200, body: this.#entry };
  };

  #review(token: string, body: unknown) {
    if (token !== reviewToken) return failure(401);
    const spec = own(body, 'spec');
    const [asked, audiences] = [own(spec, 'token'), own(spec, 'audiences')];
    const audience = callAudience(component);
    const meant = asked === callers.otherAudience ? 'drawbridge/other' : audience;
    const known = asked === callers.server || asked === callers.otherUser || asked === callers.otherAudience;
    const authenticated = known && Array.isArray(audiences) && audiences.includes(meant);
    const username = asked === callers.server ? serverAccount : 'system:serviceaccount:default:other';
    const status = authenticated ? { authenticated, user: { username }, audiences: [meant] } : { authenticated };
    return { status: 201, body: { kind: 'TokenReview', metadata: {}, spec, status } };
  }

  #answer(
    request: IncomingMessage,
    response: ServerResponse,
    handle: (request: IncomingMessage, token: string, body: unknown) => { status: number; body: unknown },
  ): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
      const { status, body } = handle(request, token, text === '' ? undefined : JSON.parse(text));
      // With white space, as API servers answer curl.
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body, undefined, 2));
    });
  }
}

const failure = (status: number) => ({
  status,
  body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason: '', code: status, message: 'no' },
});
