import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { ApiTarget } from '../../sandbox/api-call.ts';
import { until } from '../../sandbox/wait.ts';
import { upgradeRequest } from './web-socket.ts';

interface Frame {
  readonly opcode?: number;
  /** Default: the last frame of its message. */
  readonly final?: boolean;
  /** Default: masked, as clients must. */
  readonly masked?: boolean;
  /** The length in the header. Default: that of the payload. */
  readonly length?: bigint;
}

const ping = Buffer.of(0x89, 0);

/** A stream of exec, attach, or port-forward as a client without manners speaks it: frames of any form, read or not. */
export class RawStream {
  readonly socket: Duplex;
  readonly closed: Promise<unknown>;
  #received: Buffer = Buffer.alloc(0);

  private constructor(socket: Duplex, head: Buffer) {
    this.socket = socket;
    this.#received = head;
    socket.on('error', () => {});
    this.closed = once(socket, 'close');
  }

  /** Rejects if the server refuses it; the message has its answer. */
  static open(target: ApiTarget, path: string, protocol = 'v5.channel.k8s.io') {
    return new Promise<RawStream>((resolve, reject) => {
      const call = upgradeRequest(target, path, protocol);
      call.on('response', (response) => {
        text(response).then((body) => reject(new Error(`${response.statusCode}: ${body}`)), reject);
      });
      call.on('upgrade', (_response, socket, head) => resolve(new RawStream(socket, head)));
      call.on('error', reject);
      call.end();
    });
  }

  /** Begins to read, and answers the pings of the gateway. Without it, the client reads nothing. */
  read(): this {
    this.socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      if (chunk.equals(ping)) this.send('', { opcode: 10 });
    });
    return this;
  }

  /** The bytes that it has read, as one character each. */
  get received(): string {
    return this.#received.toString('latin1');
  }

  send(payload: string | Buffer, { opcode = 2, final = true, masked = true, length }: Frame = {}): void {
    const bytes = Buffer.from(payload);
    const mask = masked ? randomBytes(4) : Buffer.alloc(0);
    const head = Buffer.alloc(10);
    head.writeUInt8((final ? 0x80 : 0) | opcode, 0);
    head.writeUInt8((masked ? 0x80 : 0) | 127, 1);
    head.writeBigUInt64BE(length ?? BigInt(bytes.length), 2);
    const body = masked ? bytes.map((byte, i) => byte ^ (mask[i % 4] ?? 0)) : bytes;
    this.socket.write(Buffer.concat([head, mask, body]));
  }

  async shows(pattern: RegExp, timeoutMs = 30_000): Promise<void> {
    const isShown = (): boolean => pattern.test(this.received);
    await until(`the stream to show ${pattern}`, isShown, { timeoutMs, everyMs: 10 }).catch((error: Error) => {
      throw new Error(`${error.message}; it showed ${JSON.stringify(this.received.slice(-400))}`);
    });
  }
}
