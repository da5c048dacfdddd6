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

/** Time limit for the connection to another replica and its answer, milliseconds. */
const ANSWER_MS = 5_000;
/** Time without bytes after which the kernel probes the connection, milliseconds. */
const KEEP_ALIVE_MS = 15_000;

const prefix = '/peer/';
const PATH = /^\/peer\/([^/]+)\/([^/]+)$/;

/** Whether the path of the call is one that only replicas may call. Every other path belongs to the aggregated API. */
export const isPeerPath = (target: string | undefined): boolean => target?.startsWith(prefix) === true;

/**
 * The serving certificate and key (the pair), which all replicas read from one Secret, and by which they authenticate each other. During a
 * rotation, one replica may have the new pair while another one still has the old pair.
 */
export class PeerIdentity {
  #pair: KeyPair;
  #fingerprints: readonly string[];

  constructor(pair: KeyPair) {
    this.#pair = pair;
    this.#fingerprints = [fingerprintOf(pair)];
  }

  /** The current pair, which this replica presents. */
  get pair(): KeyPair {
    return this.#pair;
  }

  /** Presents the new pair from now on. The pair before it stays valid until a different pair replaces the new one. */
  replace(pair: KeyPair): void {
    const fingerprint = fingerprintOf(pair);
    this.#pair = pair;
    if (fingerprint !== this.#fingerprints[0]) this.#fingerprints = [fingerprint, ...this.#fingerprints].slice(0, 2);
  }

  /** Whether the other side of the connection has proved by TLS that it holds the current pair, or the one before it. */
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

/** Views of sessions between replicas. Both sides present the serving pair, and accept only the current pair or the one before it. */
export class Peers {
  readonly #deps: PeersDeps;

  constructor(deps: PeersDeps) {
    this.#deps = deps;
  }

  /** Shows a session of this replica to another replica, which writes the audit line before it shows the session to the user. */
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

  /**
   * Calls the replica at `address` (`IP:port`) for the session. Resolves to the HTTP answer, which is a view if its status is 200. Rejects
   * if the address is invalid, or if the replica cannot be reached, has a certificate that `isPeer` rejects, or does not answer within 5 s.
   * Aborting `signal` ends the call.
   */
  async open(address: string, { namespace, session }: RecordingName, signal: AbortSignal): Promise<IncomingMessage> {
    const { identity, clock } = this.#deps;
    const { cert, key } = identity.pair;
    // TLS does not verify the certificate. Instead, `isPeer` below compares it with this replica's pairs before the call is sent.
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
  code: 'NotPeer',
  message:
    'the connection does not have the serving certificate of the gateway; only its replicas may call this path; use drawbridge sessions tail',
};
const unknownPath: Refusal = {
  status: 404,
  code: 'UnknownPath',
  message: 'among replicas, the gateway serves GET /peer/NAMESPACE/SESSION only; use drawbridge sessions tail',
};
