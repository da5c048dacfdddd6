import { randomBytes } from 'node:crypto';
import { request } from 'node:https';
import type { ApiAnswer, ApiTarget } from '../../sandbox/api-call.ts';

const timeoutMs = 30_000;

/** A GET that requests a WebSocket with the protocol of exec. */
export const upgradeRequest = ({ server, authority, identity }: ApiTarget, path: string, protocol: string) =>
  request(new URL(path, server), {
    agent: false,
    ca: authority,
    cert: identity.certificate,
    key: identity.key,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': randomBytes(16).toString('base64'),
      'sec-websocket-protocol': protocol,
    },
  });

/**
 * A GET that requests a WebSocket with the protocol of exec, as newer clients do. Resolves once the server has refused it, or has opened
 * and closed it: 101, and the received text. Rejects after 30 s without progress.
 */
export function openWebSocket(target: ApiTarget, path: string, protocol = 'v5.channel.k8s.io'): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const call = upgradeRequest(target, path, protocol);
    const chunks: Buffer[] = [];
    const end = (status: number): void => resolve({ status, body: Buffer.concat(chunks).toString('utf8') });
    call.on('response', (response) => {
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => end(response.statusCode ?? 0));
    });
    call.on('upgrade', (_response, socket, head) => {
      chunks.push(head);
      socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`${path} stayed open`)));
      socket.on('data', (chunk: Buffer) => chunks.push(chunk));
      socket.on('error', reject);
      socket.on('close', () => end(101));
    });
    call.setTimeout(timeoutMs, () => call.destroy(new Error(`no answer to ${path}`)));
    call.on('error', reject);
    call.end();
  });
}
