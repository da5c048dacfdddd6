import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { CodedError, describe } from './errors.ts';

/** Port 0 takes a free port. Rejects with CodedError `PortUnavailable`. */
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

export interface Listening {
  readonly port: number;
  /** With every open connection. */
  close(): Promise<void>;
}

/** `close` aborts calls in flight. Rejects as `listen` does. */
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
