import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

/** Below 32768, where Linux by default begins to assign ports to connections, so that no connection takes a chosen port. */
const all = { first: 20_000, last: 32_767 };

/** One of `parts` equal parts of the ports, as the value of DRAWBRIDGE_PORTS, which limits a process and its children to it. */
export function partOfPorts(index: number, parts: number): string {
  const size = Math.floor((all.last - all.first + 1) / parts);
  return `${all.first + index * size}-${all.first + (index + 1) * size - 1}`;
}

const range = (process.env['DRAWBRIDGE_PORTS'] ?? partOfPorts(0, 1)).split('-').map(Number);
const [first = all.first, last = all.last] = range;

/** Each process begins at another port, so that concurrent processes usually choose different ones. */
let next = randomInt(first, last + 1);

/**
 * Returns `count` different TCP ports that were free on 127.0.0.1 a moment ago. Another program may take one before its
 * use, so the caller must be able to retry with others.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let tries = first; ports.length < count; tries++) {
    if (tries > last) throw new Error(`no ${count} TCP ports are free between ${first} and ${last}`);
    const port = next;
    next = port === last ? first : port + 1;
    if (await isFree(port)) ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** The port a TCP server listens on. */
export function portOf(server: { address(): ReturnType<Server['address']> }): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a TCP port');
  return address.port;
}
