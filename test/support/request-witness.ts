import type { ClientRequest } from 'node:http';
import { get } from 'node:https';
import { issue } from '../../sandbox/pki.ts';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { accessUrl, type StoredRequest } from './access-requests.ts';

/** Watches the requests of a namespace and keeps every state of each, independent of the server under test. */
export class RequestWitness {
  readonly #history = new Map<string, StoredRequest[]>();
  readonly #watches: ClientRequest[];

  private constructor(plane: PlaneClient, namespace: string) {
    this.#watches = ['PodAccessRequest', 'ExecAccessRequest'].map((kind) =>
      this.#watch(plane, accessUrl(kind, namespace)),
    );
  }

  static of(plane: PlaneClient, namespace: string): RequestWitness {
    return new RequestWitness(plane, namespace);
  }

  /** The states of each request, oldest first. */
  get histories(): StoredRequest[][] {
    return [...this.#history.values()];
  }

  /** Requests whose pod, plan, or deadline changed after the server had fixed it, with all their values. */
  changedDecisions(): string[] {
    return this.histories.flatMap((states) => {
      const sinceFirst = states.slice(states.findIndex(({ status }) => status?.grant !== undefined));
      const choices = new Set(sinceFirst.map(({ status }) => JSON.stringify(status?.grant)));
      return choices.size > 1 ? [`${states[0]?.metadata.name}: ${[...choices].join(' | ')}`] : [];
    });
  }

  /** Requests whose status had an end and then another one or none, or was ready. */
  changedEnds(): string[] {
    return this.histories.flatMap((states) => {
      const first = states.findIndex(({ status }) => status?.ended !== undefined);
      const sinceFirst = first < 0 ? [] : states.slice(first);
      const [end = ''] = sinceFirst.map(({ status }) => JSON.stringify(status?.ended));
      const isKept = sinceFirst.every(({ status }) => JSON.stringify(status?.ended) === end && status?.ready === false);
      return isKept ? [] : [`${states[0]?.metadata.name}: ${end}`];
    });
  }

  close(): void {
    for (const watch of this.#watches) watch.destroy();
  }

  #watch(plane: PlaneClient, url: string): ClientRequest {
    const identity = issue(plane.authority, { commonName: 'sandbox:probe', groups: ['system:masters'] });
    const watch = get(
      new URL(`${url}?watch=true`, plane.server),
      { agent: false, ca: plane.authority.certificate, cert: identity.certificate, key: identity.key },
      (response) => {
        let rest = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          const lines = (rest + chunk).split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines) this.#record(JSON.parse(line) as { object: StoredRequest });
        });
        response.on('error', () => undefined);
      },
    );
    return watch.on('error', () => undefined);
  }

  #record({ object }: { object: StoredRequest }): void {
    const states = this.#history.get(object.metadata.uid) ?? [];
    states.push(object);
    this.#history.set(object.metadata.uid, states);
  }
}
