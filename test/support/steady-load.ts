import { Agent, request } from 'node:https';
import { issue } from '../../sandbox/pki.ts';
import type { PlaneClient } from '../../sandbox/plane-client.ts';

export interface LoadReport {
  readonly sent: number;
  readonly perSecond: number;
  /** Status and text of every unexpected answer, and the errors of calls without one. */
  readonly failures: readonly string[];
}

const IN_FLIGHT = 40;

/** POSTs at a steady rate over kept-alive connections until stopped. A machine that cannot keep up sends less. */
export class SteadyLoad {
  readonly #agent: Agent;
  readonly #startedMs = performance.now();
  readonly #failures: string[] = [];
  readonly #pending = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #sent = 0;

  constructor(
    plane: PlaneClient,
    { user, groups, everyMs, status }: { user: string; groups: readonly string[]; everyMs: number; status: number },
    next: (index: number) => { readonly path: string; readonly body: unknown },
  ) {
    const { certificate: cert, key } = issue(plane.authority, { commonName: user, groups });
    this.#agent = new Agent({ keepAlive: true, cert, key, ca: plane.authority.certificate });
    const send = (): void => {
      if (this.#pending.size >= IN_FLIGHT) return;
      const { path, body } = next(this.#sent++);
      const answered = this.#post(new URL(path, plane.server), JSON.stringify(body)).then(
        (answer) => {
          if (answer.status !== status) this.#failures.push(`${answer.status} ${answer.text}`);
        },
        (error: Error) => void this.#failures.push(error.message),
      );
      this.#pending.add(answered);
      void answered.then(() => this.#pending.delete(answered));
    };
    this.#timer = setInterval(() => {
      const dueBy = (performance.now() - this.#startedMs) / everyMs;
      // Partly compensates for late timers.
      for (let late = 0; late < 5 && this.#sent < dueBy; late++) send();
    }, everyMs);
  }

  get sent(): number {
    return this.#sent;
  }

  /** Resolves when every call has an answer. */
  async stop(): Promise<LoadReport> {
    clearInterval(this.#timer);
    const seconds = (performance.now() - this.#startedMs) / 1000;
    await Promise.all(this.#pending);
    this.#agent.destroy();
    return { sent: this.#sent, perSecond: Math.round(this.#sent / seconds), failures: this.#failures };
  }

  #post(url: URL, body: string): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const sent = request(url, { method: 'POST', agent: this.#agent, headers, timeout: 20_000 }, (answer) => {
        let text = '';
        answer.on('data', (chunk) => {
          text += chunk;
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
        answer.on('error', reject);
      });
      sent.on('timeout', () => sent.destroy(new Error('no answer within 20 s')));
      sent.on('error', reject);
      sent.end(body);
    });
  }
}
