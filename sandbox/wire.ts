import type { Socket } from 'node:net';

/** Conditions of the network, shared by all wires of a proxy and changed while they run. */
export interface Conditions {
  /** Delay of every byte, in each direction, milliseconds. */
  latencyMs: number;
  /** While true, nothing arrives, not even the end of the connection. */
  stalled: boolean;
}

/** Forwards bytes from one socket to another, in order, under the given conditions. */
export class Wire {
  readonly #to: Socket;
  readonly #conditions: Conditions;
  /** Data in flight; `undefined` is the end of the stream. */
  readonly #underway: { readonly due: number; readonly chunk: Buffer | undefined }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, conditions: Conditions) {
    this.#to = to;
    this.#conditions = conditions;
    from.on('data', (chunk: Buffer) => this.#send(chunk));
    from.on('end', () => this.#send(undefined));
    from.on('close', () => this.#send(undefined));
  }

  /** Delivers the data that is due. Call it when the conditions change. */
  deliver(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#conditions.stalled) return;
    for (let next = this.#underway[0]; next !== undefined; next = this.#underway[0]) {
      const early = next.due - performance.now();
      if (early > 0) {
        this.#timer = setTimeout(() => this.deliver(), early);
        return;
      }
      this.#underway.shift();
      if (next.chunk === undefined) this.#to.end();
      else if (this.#to.writable) this.#to.write(next.chunk);
    }
  }

  #send(chunk: Buffer | undefined): void {
    this.#underway.push({ due: performance.now() + this.#conditions.latencyMs, chunk });
    if (this.#timer === undefined) this.deliver();
  }
}
