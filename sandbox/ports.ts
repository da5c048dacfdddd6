import { createServer, type Server } from 'node:net';

/**
 * Names `count` different TCP ports that were free on 127.0.0.1 a moment ago. Another program may take one before it
 * is used, so whoever listens must be ready to start again with others.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map(portOf);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

/** The port a TCP server listens on. */
export function portOf(server: { address(): ReturnType<Server['address']> }): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a TCP port');
  return address.port;
}
