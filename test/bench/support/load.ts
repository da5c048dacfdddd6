import { connect, type TLSSocket } from 'node:tls';

/**
 * A child process that keeps an HTTPS server busy over kept-alive connections. Each sends its next request as soon as it has the
 * previous answer. It writes prepared bytes to TLS sockets and reads as little as it can, to leave the processor to the server.
 * One message starts it; it answers with one message.
 */
export interface LoadOrder {
  readonly port: number;
  readonly ca: string;
  readonly connections: number;
  readonly seconds: number;
  /** Sent in turn on each connection. */
  readonly requests: readonly { readonly path: string; readonly body: string }[];
}

export interface LoadResult {
  readonly answers: number;
  readonly elapsedMs: number;
  /** Latency of each answer, milliseconds. */
  readonly latenciesMs: readonly number[];
  /** Answers without status 200 or without the expected content. */
  readonly wrong: number;
}

process.once('message', (order: LoadOrder) => {
  void run(order).then((result) => process.send?.(result, () => process.exit(0)));
});

async function run({ port, ca, connections, seconds, requests }: LoadOrder): Promise<LoadResult> {
  const bytes = requests.map(({ path, body }) =>
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ),
  );
  const latenciesMs: number[] = [];
  let wrong = 0;
  let endsAt = Number.POSITIVE_INFINITY;
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port, ca)));
  const start = performance.now();
  endsAt = start + seconds * 1000;
  await Promise.all(
    sockets.map(
      (socket, offset) =>
        new Promise<void>((resolve, reject) => {
          let next = offset;
          let sentAt = 0;
          let answer = '';
          const send = (): void => {
            sentAt = performance.now();
            socket.write(bytes[next++ % bytes.length] ?? '');
          };
          socket.setEncoding('latin1');
          socket.on('error', reject);
          socket.on('data', (chunk: string) => {
            answer += chunk;
            const head = answer.indexOf('\r\n\r\n');
            if (head < 0) return;
            const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer)?.[1]);
            if (answer.length < head + 4 + length) return;
            const atMs = performance.now();
            latenciesMs.push(atMs - sentAt);
            if (!answer.startsWith('HTTP/1.1 200') || !answer.includes('"allowed":true')) wrong++;
            answer = '';
            if (atMs < endsAt) send();
            else resolve();
          });
          send();
        }),
    ),
  );
  const elapsedMs = performance.now() - start;
  for (const socket of sockets) socket.destroy();
  return { answers: latenciesMs.length, elapsedMs, latenciesMs, wrong };
}

function open(port: number, ca: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost', ALPNProtocols: ['http/1.1'] }, () =>
      resolve(socket.removeAllListeners('error')),
    );
    socket.setNoDelay(true);
    socket.once('error', reject);
  });
}
