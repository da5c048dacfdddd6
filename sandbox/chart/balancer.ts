import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('balancer-program.ts', import.meta.url));

/**
 * Emulates Services at one port. Each Service has its own loopback address. Distributes new TCP connections to the ready ports and keeps
 * open connections.
 */
export class Balancer {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  static async open(addresses: readonly string[]): Promise<Balancer> {
    const child = fork(program, addresses, { execArgv: ['--import', 'tsx'] });
    const [port] = (await once(child, 'message')) as [number];
    return new Balancer(port, child);
  }

  /** Sends new connections to `address` to these ports of this machine; resets them if there are none. */
  route(address: string, ports: readonly number[]): void {
    if (this.#child.connected) this.#child.send({ address, ports: [...ports] });
  }

  async close(): Promise<void> {
    this.#child.disconnect();
    await once(this.#child, 'exit');
  }
}
