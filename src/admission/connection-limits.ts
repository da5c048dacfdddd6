import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { FairShare } from '../kit/fair-share.ts';
import type { FairQueue } from './fair-queue.ts';

/** Connections that are open at once, and those of one address. Handshakes and buffers of one take about 60 KB. */
const MAX_CONNECTIONS = 1024;
const MAX_OF_ADDRESS = 512;
/** For the first bytes of a handshake, and again for the rest of it. */
export const HANDSHAKE_MS = 5_000;
/** Processor time that a handshake takes, by and large; most of it is spent after the turn. */
const HANDSHAKE_COST_MS = 1;

interface DoorOptions {
  /** Handshakes wait here for their turn. */
  readonly turns: FairQueue;
  /** Told of each connection that there was no room for. */
  readonly refused: () => void;
}

/**
 * Bounds the connections of `server`: those that there is no room for are closed before TLS, the others begin their handshake in the
 * order of `turns`, once its first bytes are there. When all places are taken, an address with few connections takes the place of the
 * longest-lived connection of the address that has most.
 */
export function limitConnections(server: Server, { turns, refused }: DoorOptions): void {
  const places = new FairShare({ total: MAX_CONNECTIONS, perSource: MAX_OF_ADDRESS });
  // The only listener that node:https has there: it starts TLS.
  const [startTls] = server.listeners('connection');
  if (!startTls) throw new Error('node:https has no listener for connections');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const leave = places.take(address, 1, () => socket.destroy());
    if (!leave) {
      refused();
      socket.destroy();
      return;
    }
    socket.once('close', leave);
    socket.on('error', () => {});
    const end = (): void => void socket.destroy();
    socket.setTimeout(HANDSHAKE_MS, end);
    socket.once('readable', () => {
      socket.setTimeout(0, end);
      const start = (): void => {
        if (!socket.destroyed) startTls.call(server, socket);
      };
      turns.run(address, start, HANDSHAKE_COST_MS).catch(end);
    });
  });
}
