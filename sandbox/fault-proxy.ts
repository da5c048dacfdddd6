import { connect, createServer, type Server, type Socket } from 'node:net';
import { type HttpScript, ScriptedServer, type ScriptedServerInputs } from './http-script.ts';
import { portOf } from './ports.ts';
import { type Conditions, Wire } from './wire.ts';

export interface FaultProxyInputs extends Omit<ScriptedServerInputs, 'script'> {
  readonly script?: HttpScript;
  /** Address of this machine. Default: 127.0.0.1. */
  readonly host?: string;
}

/** A network that fails on demand, between a client and the API server. At first it forwards everything. */
export class FaultProxy {
  readonly port: number;
  readonly #host: string;
  readonly #target: number;
  readonly #scripted: ScriptedServer | undefined;
  readonly #conditions: Conditions = { latencyMs: 0, stalled: false };
  readonly #sockets = new Set<Socket>();
  readonly #wires = new Set<Wire>();
  #listener: Server | undefined;

  private constructor(listener: Server, host: string, target: number, scripted: ScriptedServer | undefined) {
    this.port = portOf(listener);
    this.#host = host;
    this.#target = target;
    this.#scripted = scripted;
    this.#serve(listener);
  }

  static async open(inputs: FaultProxyInputs): Promise<FaultProxy> {
    const { script, host = '127.0.0.1', ...rest } = inputs;
    const scripted = script === undefined ? undefined : await ScriptedServer.open({ ...rest, script });
    return new FaultProxy(await listen(host, 0), host, scripted?.port ?? inputs.apiserver, scripted);
  }

  /** In place of the API server's URL. Its certificate is valid for 127.0.0.1 and `localhost`. */
  get server(): string {
    return `https://${this.#host}:${this.port}`;
  }

  /** The number of connected clients. */
  get connections(): number {
    return this.sockets.length;
  }

  /** The connections of the connected clients. */
  get sockets(): readonly Socket[] {
    return [...this.#sockets].filter((socket) => !socket.destroyed);
  }

  /** Delays every byte by `ms` in each direction. */
  latency(ms: number): void {
    this.#conditions.latencyMs = ms;
  }

  /** Refuses new connections; open ones continue. */
  refuse(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  /** Resets every open connection (TCP RST). */
  resetAll(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Forwards no byte, but accepts connections and keeps them open. */
  stall(): void {
    this.#conditions.stalled = true;
  }

  /** Ends every fault. Delivers the bytes that `stall` held back. */
  async pass(): Promise<void> {
    this.#conditions.latencyMs = 0;
    this.#conditions.stalled = false;
    for (const wire of this.#wires) wire.deliver();
    if (this.#listener === undefined) this.#serve(await listen(this.#host, this.port));
  }

  async close(): Promise<void> {
    this.refuse();
    for (const socket of this.#sockets) socket.destroy();
    await this.#scripted?.close();
  }

  #serve(listener: Server): void {
    this.#listener = listener;
    listener.on('connection', (client) => this.#accept(client));
  }

  #accept(client: Socket): void {
    // Keeps half-open sockets, so that the end of one direction is forwarded like data.
    const upstream = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true });
    const wires = [new Wire(client, upstream, this.#conditions), new Wire(upstream, client, this.#conditions)];
    for (const wire of wires) this.#wires.add(wire);
    this.#sockets.add(client);
    client.on('error', () => undefined);
    upstream.on('error', () => undefined);
    client.on('close', () => {
      upstream.destroy();
      this.#sockets.delete(client);
      for (const wire of wires) this.#wires.delete(wire);
    });
  }
}

function listen(host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true });
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}
