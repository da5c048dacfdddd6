import type { Server } from 'node:net';
import { CodedError, describe } from './errors.ts';

/** Resolves once `server` listens; 0 takes a free port. Rejects with CodedError `PortUnavailable` when the address cannot be had. */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: unknown): void =>
      reject(
        new CodedError('PortUnavailable', `cannot listen on ${host}, port ${port}: ${describe(cause)}`, { cause }),
      );
    server.once('error', onError);
    server.listen(port, host, () => {
      server.removeListener('error', onError);
      resolve();
    });
  });
}
