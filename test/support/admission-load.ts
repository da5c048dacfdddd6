import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { issue } from '../../sandbox/pki.ts';
import type { Plane } from '../../sandbox/plane.ts';
import { accessUrl, podRequest } from './access-requests.ts';

/**
 * Creates requests, as dry runs, at a steady rate until it is stopped. Each passes two webhooks, so `perSecond` creates cause twice as
 * many reviews.
 */
export class AdmissionLoad {
  readonly failures: string[] = [];
  sent = 0;
  #running = true;
  readonly #agent: Agent;
  readonly #loop: Promise<void>;

  constructor(plane: Plane, namespace: string, perSecond: number) {
    const { certificate, key } = issue(plane.authority, { commonName: 'alice', groups: ['devs'] });
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 16,
      ca: plane.authority.certificate,
      cert: certificate,
      key,
    });
    this.#loop = this.#run(new URL(`${accessUrl('PodAccessRequest', namespace)}?dryRun=All`, plane.server), perSecond);
  }

  /** Resolves when every call has been answered. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#loop;
    this.#agent.destroy();
  }

  async #run(url: URL, perSecond: number): Promise<void> {
    const start = performance.now();
    const calls: Promise<void>[] = [];
    while (this.#running) {
      const due = Math.floor(((performance.now() - start) / 1000) * perSecond);
      // Skips calls that a busy machine missed, instead of a burst.
      for (let n = Math.min(due - this.sent, 5); n > 0; n -= 1) calls.push(this.#create(url, `load-${this.sent++}`));
      await sleep(10);
    }
    await Promise.all(calls);
  }

  #create(url: URL, name: string): Promise<void> {
    const body = JSON.stringify(podRequest(name));
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return new Promise((resolve) => {
      const call = request(url, { method: 'POST', agent: this.#agent, headers, timeout: 15_000 }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          if (response.statusCode !== 201) this.failures.push(`${name}: ${Buffer.concat(chunks).toString('utf8')}`);
          resolve();
        });
      });
      call.on('timeout', () => call.destroy(new Error('no answer within 15 s')));
      call.on('error', (error) => {
        this.failures.push(`${name}: ${error.message}`);
        resolve();
      });
      call.end(body);
    });
  }
}
