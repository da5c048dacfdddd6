import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { FairShare } from '../kit/fair-share.ts';
import type { FairQueue } from './fair-queue.ts';

/** Handshake and buffers of one take about 60 KB. */
const MAX_CONNECTIONS = 1024;
const MAX_PER_ADDRESS = 512;
/** For the first bytes of a handshake, and again for the rest of it. */
export const HANDSHAKE_MS = 5_000;
/** Most of it is spent after the queued job. */
const HANDSHAKE_COST_MS = 1;

interface ConnectionLimitOptions {
  /** Of the handshakes. */
  readonly queue: FairQueue;
  readonly onRejected: () => void;
  /** Whether the connection no longer counts, because its peer is known. Default: never. */
  readonly isTrusted?: (socket: TLSSocket) => boolean;
}

/**
 * Closes a connection above a limit before TLS; others start their handshake in the order of the
 * queue. A new address may replace a connection of the one with the most, idle ones first. Call it
 * first: it removes earlier listeners of `connection`.
 */
export function limitConnections(server: Server, { queue, onRejected, isTrusted }: ConnectionLimitOptions): void {
  const slots = new FairShare({ total: MAX_CONNECTIONS, perSource: MAX_PER_ADDRESS });
  /** By the client's address and port: a call has the TLS socket, not the accepted one. */
  const unanswered = new Map<string, ServerResponse>();
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const client = clientOf(socket);
    unanswered.set(client, response);
    response.once('close', () => {
      if (unanswered.get(client) === response) unanswered.delete(client);
    });
  });
  const releases = new Map<string, () => void>();
  server.on('secureConnection', (socket: TLSSocket) => {
    if (isTrusted?.(socket)) releases.get(clientOf(socket))?.();
  });
  // node:https registers only this listener; it starts TLS.
  const [startTls] = server.listeners('connection');
  if (!startTls) throw new Error('node:https has no listener for connections');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress;
    // The client has closed this connection already, so it must not replace another one.
    if (address === undefined) return void socket.destroy();
    const client = clientOf(socket);
    const isIdle = (): boolean => !unanswered.has(client);
    const release = slots.acquire(address, 1, () => socket.destroy(), isIdle);
    if (!release) {
      onRejected();
      return void socket.destroy();
    }
    socket.once('close', release);
    releases.set(client, release);
    socket.once('close', () => releases.delete(client));
    socket.on('error', () => {});
    const destroy = (): void => void socket.destroy();
    socket.setTimeout(HANDSHAKE_MS, destroy);
    socket.once('readable', () => {
      socket.setTimeout(0, destroy);
      const start = (): void => {
        if (!socket.destroyed) startTls.call(server, socket);
      };
      queue.run(address, start, { leastMs: HANDSHAKE_COST_MS }).catch(destroy);
    });
  });
}

const clientOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
