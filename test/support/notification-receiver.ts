import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { Webhook } from 'standardwebhooks';
import { type Authority, issue } from '../../sandbox/pki.ts';
import { portOf } from '../../sandbox/ports.ts';

/** A call to the receiver. */
export interface Received {
  /** The header `webhook-id`. */
  readonly id: string;
  /** As JSON. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly atMs: number;
}

/** A webhook receiver over HTTPS that accepts what `standardwebhooks` verifies, and answers 401 to all else. */
export class NotificationReceiver {
  readonly received: Received[] = [];
  /** How many calls it refused. */
  refused = 0;
  /** Replaces the answer 204 to a verified call. */
  answer: (response: ServerResponse) => void = (response) => response.writeHead(204).end();
  readonly signingKey = `whsec_${randomBytes(24).toString('base64')}`;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(authority: Authority): Promise<NotificationReceiver> {
    const { certificate: cert, key } = issue(authority, { commonName: 'receiver', serves: ['localhost', '127.0.0.1'] });
    const server = createServer({ cert, key });
    const receiver = new NotificationReceiver(server);
    server.on(
      'request',
      (request: IncomingMessage, response: ServerResponse) => void receiver.#take(request, response),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `https://localhost:${portOf(this.#server)}/hook`;
  }

  /** The types of the events so far, in order, without prefix and version. */
  get types(): string[] {
    return this.received.map(({ body }) => String(body['type']).slice('dev.drawbridge.access.'.length, -'.v1'.length));
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    try {
      const body = new Webhook(this.signingKey).verify(Buffer.concat(chunks), headers) as Received['body'];
      this.received.push({ id: headers['webhook-id'] ?? '', body, atMs: Date.now() });
    } catch {
      this.refused++;
      response.writeHead(401).end();
      return;
    }
    this.answer(response);
  }
}
