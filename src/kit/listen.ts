import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { CodedError, describe } from './errors.ts';

/** Resolves once `server` listens; port 0 takes a free port. Rejects with CodedError `PortUnavailable` if it cannot listen there. */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: unknown): void =>
      reject(
        new CodedError(
          'PortUnavailable',
          `cannot listen on ${host}, port ${port}: ${describe(cause)}; set another address or port`,
          { cause },
        ),
      );
    server.once('error', onError);
    server.listen(port, host, () => {
      server.removeListener('error', onError);
      resolve();
    });
  });
}

/** A server that listens. */
export interface Listening {
  readonly port: number;
  /** Closes the server and every open connection. */
  close(): Promise<void>;
}

/** Opens the port of an HTTP server. The returned `close` aborts calls in flight. Rejects as `listen` does. */
export async function listenHttp(server: HttpServer, host: string, port: number): Promise<Listening> {
  await listen(server, host, port);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
