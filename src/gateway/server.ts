import { constants } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { type Clock, sleep } from '../kit/clock.ts';
import type { KeyPair } from '../kit/key-pair.ts';
import { listen } from '../kit/listen.ts';
import type { Store } from '../kube/store.ts';
import { type Refusal, refuseUpgrade } from './answers.ts';
import { type FrontProxy, frontProxyOf, isApiServer, recordHandshake } from './front-proxy.ts';
import type { Gateway } from './gateway.ts';
import type { PeerIdentity } from './peers.ts';

interface Certificate {
  readonly current: KeyPair;
  /** `listener` gets each new pair, perhaps first the current one, until `close`. */
  start(listener: (pair: KeyPair) => void): void;
  close(): void;
}

interface GatewayServerOptions {
  readonly gateway: Pick<Gateway, 'onRequest' | 'onUpgrade'>;
  readonly frontProxy: Store<FrontProxy>;
  readonly certificate: Certificate;
  readonly identity: PeerIdentity;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly clock: Clock;
  /** Limits unknown peers: not the API server and replicas, which `isTrusted` knows. */
  readonly limit: (server: Server, isTrusted: (socket: TLSSocket) => boolean) => void;
}

/** Time limit of the head of a call. */
const HEADERS_MS = 5_000;
/** Longer than the API server's 90 s: otherwise, a call could arrive on a closing connection. */
const KEEP_ALIVE_MS = 120_000;
/** Bytes of the head of a call: the command of exec is in its URL. */
const MAX_HEAD = 256 * 1024;
/** How long a client may take to send the rest of a head that is too large. */
const REST_MS = 1_000;
/** How long a closing server waits for streams and logs to send the reason for their end. */
const DRAIN_MS = 2_000;

/** Serves the gateway over HTTPS. Rejects with `PortUnavailable`. */
export async function startGatewayServer(options: GatewayServerOptions) {
  const { gateway, frontProxy, certificate, identity, limit } = options;
  const server = createServer(
    {
      ...tlsOptions(certificate.current, frontProxyOf(frontProxy)),
      // `isTrusted` checks the certificate at each call, so that a refused caller gets the reason.
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: HEADERS_MS,
      headersTimeout: HEADERS_MS,
      // Heads are large, so Node checks their time limit each second instead of each 30 s.
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEAD,
    },
    (request, response) => {
      // Not trusted, or no longer, for example because its certificate authority (CA) was replaced.
      if (!isTrusted(request.socket as TLSSocket)) response.setHeader('connection', 'close');
      void gateway.onRequest(request, response);
    },
  );
  const isTrusted = (socket: TLSSocket): boolean => {
    const settings = frontProxyOf(frontProxy);
    return (settings !== undefined && isApiServer(socket, settings)) || identity.isPeer(socket);
  };
  /** After an upgrade, Node's server no longer has the sockets and does not close them. */
  const upgraded = new Set<Duplex>();
  server.on('secureConnection', (socket) => recordHandshake(socket, frontProxyOf(frontProxy)));
  server.on('upgrade', (request, socket, head) => {
    (socket as TLSSocket).setTimeout(0);
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    void gateway.onUpgrade(request, socket, head);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'HPE_HEADER_OVERFLOW') return void socket.destroy();
    // Further parts of the same head cause the same error.
    if (socket.writableEnded) return;
    // Closed before the client has sent all, the connection resets, and the answer is lost.
    refuseUpgrade(socket, headTooLarge);
    options.clock.schedule(REST_MS, () => socket.destroy());
  });
  limit(server, isTrusted);
  let pair = certificate.current;
  const apply = (): void => server.setSecureContext(tlsOptions(pair, frontProxyOf(frontProxy)));
  await listen(server, options.host, options.port);
  // An invalid pair makes `setSecureContext` throw, and the earlier pair stays.
  certificate.start((next) => {
    server.setSecureContext(tlsOptions(next, frontProxyOf(frontProxy)));
    pair = next;
    identity.replace(next);
  });
  const unsubscribe = frontProxy.subscribe(apply);
  return {
    port: (server.address() as AddressInfo).port,
    async close(): Promise<void> {
      unsubscribe();
      certificate.close();
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      await Promise.race([closed, sleep(options.clock, DRAIN_MS)]);
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await closed;
    },
  };
}

const headTooLarge: Refusal = {
  status: 431,
  code: 'HeadTooLarge',
  message: `the path, query, and headers of the call have over ${MAX_HEAD / 1024} KiB; shorten the command of exec: pass a script by its standard input instead`,
};

/** Without `ca`, Node trusts the public CAs, so no settings mean an empty list. */
function tlsOptions({ cert, key }: KeyPair, settings: FrontProxy | undefined) {
  return {
    cert,
    key,
    ca: settings?.authorities ? [settings.authorities] : [],
    minVersion: 'TLSv1.2',
    // Without tickets, each connection must present its certificate again.
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const;
}
