import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Identity } from '../../../sandbox/pki.ts';
import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { listen } from '../../../src/kit/listen.ts';

/** A received call. `at` is performance.now(). */
export interface ReceivedCall {
  readonly request: ReconcileRequest;
  readonly at: number;
}

/** An answer that is no outcome. `retryAfter`: the header Retry-After. */
interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly retryAfter?: string;
}

export type Script = (request: ReconcileRequest) => Outcome | Answer | Promise<Outcome | Answer>;

interface Place {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: a free port. */
  readonly port?: number;
  /** Of a server; without it, the component serves plain HTTP. */
  readonly identity?: Identity | undefined;
}

/** A component that a test scripts. It records every call. */
export class ScriptedComponent {
  readonly calls: ReceivedCall[] = [];
  script: Script;
  /** Script for the operation delete. */
  teardown: Script = () => ({ outcome: 'Deleted' });
  /** Delay of the answer, milliseconds. */
  delayMs = 0;
  readonly #server: Server;
  readonly #origin: string;
  readonly #listeners = new Set<(call: ReceivedCall) => void>();

  private constructor(script: Script, { host = '127.0.0.1', identity }: Place) {
    this.script = script;
    this.#origin = `${identity ? 'https' : 'http'}://${host}`;
    const listener: RequestListener = (request, response) => {
      const at = performance.now();
      let text = '';
      request.on('data', (bytes: Buffer) => {
        text += bytes.toString('utf8');
      });
      request.on('end', () => {
        const call = { request: JSON.parse(text) as ReconcileRequest, at };
        this.calls.push(call);
        for (const listener of this.#listeners) listener(call);
        void this.#answer(call.request).then(({ status, body, retryAfter }) => {
          if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
          response.writeHead(status, { 'content-type': 'application/json' });
          response.end(body === undefined ? '' : JSON.stringify(body));
        });
      });
    };
    this.#server = identity
      ? createSecureServer({ cert: identity.certificate, key: identity.key }, listener)
      : createServer(listener);
  }

  static async start(script: Script, place: Place = {}): Promise<ScriptedComponent> {
    const component = new ScriptedComponent(script, place);
    await listen(component.#server, place.host ?? '127.0.0.1', place.port ?? 0);
    return component;
  }

  get url(): string {
    return `${this.#origin}:${(this.#server.address() as AddressInfo).port}`;
  }

  onCall(listener: (call: ReceivedCall) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The next call; rejects after 30 s without one. */
  nextCall(): Promise<ReceivedCall> {
    return new Promise((resolve, reject) => {
      const giveUp = setTimeout(() => reject(new Error('the component was not called within 30 s')), 30_000);
      const stop = this.onCall((call) => {
        stop();
        clearTimeout(giveUp);
        resolve(call);
      });
    });
  }

  callsFor(entryUid: string): ReceivedCall[] {
    return this.calls.filter(({ request }) => request.entry.id === entryUid);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: ReconcileRequest): Promise<Answer> {
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    const said = await (request.operation === 'delete' ? this.teardown(request) : this.script(request));
    return 'outcome' in said ? { status: 200, body: said } : said;
  }
}
