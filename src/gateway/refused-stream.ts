import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { bodyOf, endSocket, type Refusal, refuseUpgrade, switchingProtocols } from './answers.ts';
import { channelMessage, closeFrame } from './frames.ts';
import { channelProtocols, type StreamKind } from './pod-call.ts';
import { channels } from './process-end.ts';

/** RFC 6455 appends it to the key of the client, to prove that the server speaks WebSocket. */
const WEB_SOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/**
 * An exec and an attach open, and end with the refusal as their status: after an HTTP status,
 * kubectl would repeat the call by SPDY, perhaps to another replica, and show only that answer. A
 * port-forward has no status, so it gets the HTTP status.
 */
export function refuseStream(request: IncomingMessage, socket: Duplex, kind: StreamKind, refusal: Refusal): void {
  const { 'sec-websocket-key': key = '', 'sec-websocket-protocol': offered = '' } = request.headers;
  const protocol = channelProtocols.find((name) => offered.split(',').some((one) => one.trim() === name));
  if (kind === 'portforward' || protocol === undefined) {
    refuseUpgrade(socket, refusal);
    return;
  }
  const accept = createHash('sha1').update(`${key}${WEB_SOCKET_GUID}`).digest('base64');
  socket.write(switchingProtocols({ 'sec-websocket-accept': accept, 'sec-websocket-protocol': protocol }));
  endSocket(socket, Buffer.concat([channelMessage(channels.error, bodyOf(refusal)), closeFrame(1000)]));
}
