// The program behind `Balancer`: a process of its own, so that nothing else holds up what passes through it.
import { connect, createServer } from 'node:net';
import { portOf } from '../ports.ts';

let ready: readonly number[] = [];
let turn = 0;

const server = createServer((client) => {
  turn += 1;
  const port = ready[turn % ready.length];
  if (port === undefined) return void client.resetAndDestroy();
  const backend = connect(port, '127.0.0.1');
  for (const [socket, other] of [
    [client, backend],
    [backend, client],
  ] as const) {
    socket.on('error', () => other.destroy());
    // What it said last may still be on its way to the other side.
    socket.on('close', () => other.end());
    socket.pipe(other);
  }
});

process.on('message', (ports: readonly number[]) => {
  ready = ports;
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.(portOf(server)));
