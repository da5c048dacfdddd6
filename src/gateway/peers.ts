import { X509Certificate } from 'node:crypto';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { connect, TLSSocket } from 'node:tls';
import { isRecordingName } from '../audit/verify/recordings.ts';
import type { Clock } from '../kit/clock.ts';
import type { KeyPair } from '../kit/key-pair.ts';
import { type Refusal, refuse } from './answers.ts';
import type { LiveViews } from './live-views.ts';
import type { RecordingName } from './recording/sink.ts';

/** For the connection to another replica and its answer. */
const ANSWER_MS = 5_000;
/** Without bytes for this long, the kernel probes the connection. */
const KEEP_ALIVE_MS = 15_000;

const prefix = '/peer/';
const PATH = /^\/peer\/([^/]+)\/([^/]+)$/;

/** Only replicas may call these paths. All others belong to the aggregated API. */
export const isPeerPath = (target: string | undefined): boolean => target?.startsWith(prefix) === true;

/**
 * The serving pair (certificate and key), which all replicas read from one Secret and by which they
 * know each other. During a rotation, one may already have the new pair, and another the old one.
 */
export class PeerIdentity {
  #pair: KeyPair;
  #fingerprints: readonly string[];

  constructor(pair: KeyPair) {
    this.#pair = pair;
    this.#fingerprints = [fingerprintOf(pair)];
  }

  /** The pair that this replica presents. */
  get pair(): KeyPair {
    return this.#pair;
  }

  /** The pair before it stays valid until the next different one. */
  replace(pair: KeyPair): void {
    const fingerprint = fingerprintOf(pair);
    this.#pair = pair;
    if (fingerprint !== this.#fingerprints[0]) this.#fingerprints = [fingerprint, ...this.#fingerprints].slice(0, 2);
  }

  /** The peer has proved by TLS that it holds the current pair, or the one before. */
  isPeer(socket: unknown): boolean {
    const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    return certificate !== undefined && this.#fingerprints.includes(certificate.fingerprint256);
  }
}

const fingerprintOf = ({ cert }: KeyPair): string => new X509Certificate(cert).fingerprint256;

interface PeersDeps {
  readonly identity: PeerIdentity;
  readonly views: LiveViews;
  readonly clock: Clock;
}

/** Views of sessions between replicas, which check each other's pair (`isPeer`). */
export class Peers {
  readonly #deps: PeersDeps;

  constructor(deps: PeersDeps) {
    this.#deps = deps;
  }

  /** The other replica writes the audit line before it shows the session to the user. */
  answer({ method, url, socket }: IncomingMessage, response: ServerResponse): void {
    const { identity, views } = this.#deps;
    const [, namespace = '', session = ''] = PATH.exec(url ?? '') ?? [];
    const isServed = method === 'GET' && isRecordingName(namespace, session);
    const view = !identity.isPeer(socket) ? notPeer : isServed ? views.admit({ namespace, session }) : unknownPath;
    if ('status' in view) {
      refuse(response, view);
      return;
    }
    response.once('close', view.release);
    views.show(view, response);
  }

  /** Calls `IP:port`; status 200 is a view. Rejects after 5 s, or if the replica fails `isPeer`. */
  async open(address: string, { namespace, session }: RecordingName, signal: AbortSignal): Promise<IncomingMessage> {
    const { identity, clock } = this.#deps;
    const { cert, key } = identity.pair;
    // Not TLS but `isPeer` below verifies the certificate, before the call is sent.
    const socket = connect({ ...targetOf(address), cert, key, rejectUnauthorized: false, minVersion: 'TLSv1.2' });
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const abort = (): void => void socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    return new Promise<IncomingMessage>((resolve, reject) => {
      const cancel = clock.schedule(ANSWER_MS, () =>
        socket.destroy(new Error(`the replica did not answer within ${ANSWER_MS / 1000} s`)),
      );
      socket.on('error', reject);
      socket.once('close', () => {
        cancel();
        signal.removeEventListener('abort', abort);
        reject(new Error('the replica closed the connection'));
      });
      socket.once('secureConnect', () => {
        if (!identity.isPeer(socket)) {
          socket.destroy(
            new Error(
              'the replica presents neither the current certificate of this replica nor the one before it; all replicas of the gateway need the same certificate',
            ),
          );
          return;
        }
        const call = request({ createConnection: () => socket, path: `${prefix}${namespace}/${session}` });
        call.on('error', reject);
        call.on('response', (answer) => {
          cancel();
          resolve(answer);
        });
        call.end();
      });
    });
  }
}

/** @throws Error if the address is not an IP address with a port. */
function targetOf(address: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(address) ?? [];
  const host = bracketed ?? plain ?? '';
  if (isIP(host) === 0 || Number(port) < 1 || Number(port) > 65_535)
    throw new Error('the address of the replica is not IP:port');
  return { host, port: Number(port) };
}

const notPeer: Refusal = {
  status: 401,
  code: 'NotApiServer',
  message:
    'the connection does not have the serving certificate of the gateway; only its replicas may call this path; use drawbridge sessions tail',
};
const unknownPath: Refusal = {
  status: 404,
  code: 'NotServed',
  message: 'among replicas, the gateway serves GET /peer/NAMESPACE/SESSION only; use drawbridge sessions tail',
};
