import { connect, createServer, type Server, type Socket } from 'node:net';
import { portOf } from '../../../sandbox/ports.ts';
import { listen } from '../../../src/kit/listen.ts';

/** One address for several servers, like a Service: each connection goes to the next server that accepts it. */
export class ServiceAddress {
  readonly port: number;
  readonly #server: Server;
  readonly #open = new Map<Socket, number>();
  #ports: readonly number[] = [];
  #turn = 0;

  private constructor(server: Server) {
    this.#server = server;
    this.port = portOf(server);
    server.on('connection', (client) => {
      client.on('error', () => undefined);
      client.on('close', () => this.#open.delete(client));
      this.#pass(client, this.#turn++, this.#ports.length);
    });
  }

  static async open(): Promise<ServiceAddress> {
    const server = createServer();
    await listen(server, '127.0.0.1', 0);
    return new ServiceAddress(server);
  }

  /** Replaces the servers. Connections to others are closed. */
  setServers(...ports: readonly number[]): void {
    this.#ports = ports;
    for (const [client, port] of this.#open) if (!ports.includes(port)) client.destroy();
  }

  close(): void {
    this.#server.close();
    for (const client of this.#open.keys()) client.destroy();
  }

  #pass(client: Socket, turn: number, tries: number): void {
    const port = this.#ports[turn % this.#ports.length];
    if (port === undefined || tries === 0) {
      client.destroy();
      return;
    }
    const upstream = connect({ port, host: '127.0.0.1' });
    const refused = (): void => this.#pass(client, turn + 1, tries - 1);
    upstream.once('error', refused);
    upstream.once('connect', () => {
      upstream.off('error', refused);
      upstream.on('error', () => client.destroy());
      upstream.on('close', () => client.destroy());
      client.on('close', () => upstream.destroy());
      this.#open.set(client, port);
      client.pipe(upstream).pipe(client);
    });
  }
}
