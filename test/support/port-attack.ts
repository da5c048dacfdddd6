import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/** Loopback addresses that neither the API server nor the tests use. */
const strangers: readonly string[] = Array.from({ length: 16 }, (_, index) => `127.0.0.${100 + index}`);

interface PlainAnswer {
  readonly status: number;
  readonly text: string;
}

/** An attacker who reaches the ports of a server on this machine, from several addresses and without a credential. */
export class PortAttack {
  readonly #sockets = new Set<Socket>();
  readonly #agents = new Map<string, Agent>();

  /** Ends all connections. */
  end(): void {
    for (const socket of this.#sockets) socket.destroy();
    for (const agent of this.#agents.values()) agent.destroy();
  }

  /** Opens silent connections, in turn from all addresses. Resolves when the last is open or rejected. */
  async idle(port: number, count: number): Promise<void> {
    const opened = Array.from({ length: count }, (_, index) => {
      const socket = this.#keep(connectTcp({ host: '127.0.0.1', port, localAddress: addressOf(index) }));
      return Promise.race([once(socket, 'connect'), once(socket, 'close')]);
    });
    await Promise.all(opened);
  }

  /** Announces bodies of 4 MiB and sends `bytes` of each. Resolves when the server has accepted or rejected them. */
  async unfinished(port: number, path: string, count: number, bytes: number): Promise<void> {
    const piece = Buffer.alloc(bytes, 'x');
    const begun = Array.from({ length: count }, async (_, index) => {
      const localAddress = addressOf(index);
      const plain = this.#keep(connectTcp({ host: '127.0.0.1', port, localAddress }));
      const socket = this.#keep(connectTls({ socket: plain, rejectUnauthorized: false }));
      await settled(socket, 'secureConnect');
      if (socket.destroyed) return;
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4194304\r\n\r\n`,
      );
      await new Promise<void>((resolve) => {
        socket.once('close', () => resolve());
        socket.write(piece, () => resolve());
      });
    });
    await Promise.all(begun);
  }

  /** Posts a body from one of the addresses. Undefined if the server closed the connection. */
  async post(port: number, path: string, body: string | Buffer, index = 0): Promise<PlainAnswer | undefined> {
    const localAddress = addressOf(index);
    const agent = this.#agents.get(localAddress) ?? new Agent({ keepAlive: true, localAddress });
    this.#agents.set(localAddress, agent);
    const sent = request({
      host: '127.0.0.1',
      port,
      path,
      agent,
      method: 'POST',
      rejectUnauthorized: false,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    });
    return new Promise((resolve) => {
      sent.on('error', () => resolve(undefined));
      sent.on('response', (answer) => {
        let text = '';
        answer.on('data', (chunk) => {
          text += chunk;
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
        answer.on('error', () => resolve(undefined));
      });
      sent.end(body);
    });
  }

  /** Posts a body repeatedly from all addresses at once until stopped. Resolves to the number of answers. */
  flood(port: number, path: string, body: string | Buffer, connections: number): { stop(): Promise<number> } {
    let stopped = false;
    let answers = 0;
    const all = Array.from({ length: connections }, async (_, index) => {
      while (!stopped) {
        if (await this.post(port, path, body, index)) answers++;
        else await new Promise((resolve) => setTimeout(resolve, 10));
      }
    });
    return {
      stop: async () => {
        stopped = true;
        await Promise.all(all);
        return answers;
      },
    };
  }

  #keep<T extends Socket | TLSSocket>(socket: T): T {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
    return socket;
  }
}

const addressOf = (index: number): string => strangers[index % strangers.length] ?? '127.0.0.100';

const settled = (socket: Socket, event: string): Promise<unknown> =>
  Promise.race([once(socket, event), once(socket, 'close')]).catch(() => undefined);
