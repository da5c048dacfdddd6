import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Clock } from '../kit/clock.ts';
import type { Credentials } from '../kube/credentials.ts';

export type Answer =
  | { readonly kind: 'response'; readonly message: IncomingMessage }
  /** `head`: the first bytes of the stream, which arrived with the answer. */
  | {
      readonly kind: 'upgraded';
      readonly headers: IncomingHttpHeaders;
      readonly socket: Duplex;
      readonly head: Buffer;
    };

/** For streams and logs, the API server first connects to the kubelet. */
const ANSWER_MS = 30_000;
/** Idle connections that stay open for the next call. */
const SPARE_CONNECTIONS = 16;

/** All other headers are dropped, above all those that name or impersonate a user. */
const forwarded = [
  'accept',
  'accept-encoding',
  'audit-id',
  'sec-websocket-key',
  'sec-websocket-protocol',
  'sec-websocket-version',
  'user-agent',
];

/** The API server, called as the gateway's own ServiceAccount. */
export class Upstream {
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: SPARE_CONNECTIONS });

  constructor(credentials: Credentials, clock: Clock) {
    this.#credentials = credentials;
    this.#clock = clock;
  }

  /** A GET of `target`, path and query. `signal` also ends the answer. Rejects after 30 s. */
  async open(
    target: string,
    { headers, upgrades, signal }: { headers: IncomingHttpHeaders; upgrades: boolean; signal: AbortSignal },
  ): Promise<Answer> {
    const { tls, headers: auth } = await this.#credentials.connectionAuth();
    const url = new URL(this.#credentials.server);
    const { ca, cert, key, servername, rejectUnauthorized } = tls;
    return new Promise((resolve, reject) => {
      const call = request({
        agent: this.#agent,
        host: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port || 443,
        path: `${url.pathname.replace(/\/+$/, '')}${target}`,
        headers: { ...pick(headers), ...auth, ...(upgrades ? { connection: 'Upgrade', upgrade: 'websocket' } : {}) },
        signal,
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
        ...(servername === undefined ? {} : { servername }),
        ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
      });
      const cancel = this.#clock.schedule(ANSWER_MS, () =>
        call.destroy(new Error(`the API server did not answer within ${ANSWER_MS / 1000} s`)),
      );
      const settle = (answer: Answer): void => {
        cancel();
        resolve(answer);
      };
      call.on('response', (message) => settle({ kind: 'response', message }));
      call.on('upgrade', ({ headers }, socket, head) => settle({ kind: 'upgraded', headers, socket, head }));
      call.on('error', (error) => {
        cancel();
        reject(error);
      });
      call.end();
    });
  }

  /** Also ends calls without an answer. A stream ends by its `signal` or its socket instead. */
  close(): void {
    this.#agent.destroy();
  }
}

function pick(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const entries = forwarded.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const]));
  return Object.fromEntries(entries);
}
