import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { FairShare } from '../kit/fair-share.ts';
import type { FairQueue } from './fair-queue.ts';

/** Open connections, in total and per address. The handshake and buffers of one take about 60 KB. */
const MAX_CONNECTIONS = 1024;
const MAX_OF_ADDRESS = 512;
/** Limit for the first bytes of a handshake, and again for the rest of it. */
export const HANDSHAKE_MS = 5_000;
/** Approximate processor time of a handshake, milliseconds. Most of it is spent after the queued job. */
const HANDSHAKE_COST_MS = 1;

interface ConnectionLimitOptions {
  /** Queue of the handshakes. */
  readonly queue: FairQueue;
  /** Called for each connection that exceeds the limits. */
  readonly onRejected: () => void;
}

/**
 * Limits the connections of `server`. It closes a connection above a limit before TLS. The others start their handshake in the order
 * of the queue, once its first bytes have arrived. If all slots are taken, an address with few connections replaces the oldest
 * connection of the address with the most.
 */
export function limitConnections(server: Server, { queue, onRejected }: ConnectionLimitOptions): void {
  const slots = new FairShare({ total: MAX_CONNECTIONS, perSource: MAX_OF_ADDRESS });
  // node:https registers only this listener; it starts TLS.
  const [startTls] = server.listeners('connection');
  if (!startTls) throw new Error('node:https has no listener for connections');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const release = slots.acquire(address, 1, () => socket.destroy());
    if (!release) {
      onRejected();
      socket.destroy();
      return;
    }
    socket.once('close', release);
    socket.on('error', () => {});
    const end = (): void => void socket.destroy();
    socket.setTimeout(HANDSHAKE_MS, end);
    socket.once('readable', () => {
      socket.setTimeout(0, end);
      const start = (): void => {
        if (!socket.destroyed) startTls.call(server, socket);
      };
      queue.run(address, start, HANDSHAKE_COST_MS).catch(end);
    });
  });
}
