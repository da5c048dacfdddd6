// The program behind `Balancer`, in a process of its own, so that other work does not delay its connections.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { portOf } from '../ports.ts';

/** The ports of ready backends, by the address of their Service. */
const ready = new Map<string, readonly number[]>();
let turn = 0;

const forward = (address: string) => (client: Socket) => {
  const ports = ready.get(address) ?? [];
  turn += 1;
  const port = ports[turn % ports.length];
  if (port === undefined) return void client.resetAndDestroy();
  const backend = connect(port, '127.0.0.1');
  for (const [socket, other] of [
    [client, backend],
    [backend, client],
  ] as const) {
    socket.on('error', () => other.destroy());
    // Ends the other socket gracefully, because its last bytes may still be in flight.
    socket.on('close', () => other.end());
    socket.pipe(other);
  }
};

/** Resolves with the port, which is the same at each address. The kernel chooses it for the first listener. */
async function listen(addresses: readonly string[]): Promise<number> {
  let port = 0;
  for (const address of addresses) {
    const server = createServer(forward(address));
    server.listen(port, address);
    await once(server, 'listening');
    port = portOf(server);
  }
  return port;
}

process.on('message', ({ address, ports }: { address: string; ports: readonly number[] }) => {
  ready.set(address, ports);
});
process.on('disconnect', () => process.exit());
process.send?.(await listen(process.argv.slice(2)));
