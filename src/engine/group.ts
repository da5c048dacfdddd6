import { describe } from '../kit/errors.ts';
import type { LeaderGate } from './leader-gate.ts';
import { type Member, type Supervision, supervise } from './member.ts';

/** The controllers behind one leader gate, which run while this process leads. */
export class Group {
  readonly #gate: LeaderGate;
  readonly #supervision: Supervision;
  /** In the order in which they were added. */
  readonly #members = new Map<Member, { readonly ordered: boolean }>();
  #leading: AbortSignal | undefined;
  #closed = false;

  constructor(gate: LeaderGate, supervision: Supervision) {
    this.#gate = gate;
    this.#supervision = supervision;
  }

  get name(): string {
    return this.#gate.name;
  }

  /** An independent member waits for no other member, and no other member waits for it. */
  add(member: Member, independent: boolean): void {
    this.#members.set(member, { ordered: !independent });
    if (this.#leading && independent && !this.#closed) void member.start();
  }

  /** Stops the member. Resolves once none of its work is in flight. */
  async remove(member: Member): Promise<void> {
    this.#members.delete(member);
    await member.stop('stopped');
  }

  /** Starts no member from now on. */
  close(): void {
    this.#closed = true;
  }

  /** Campaigns, and runs its members while it leads, until `signal` aborts. Retries a failed gate with backoff. */
  run(signal: AbortSignal): Promise<void> {
    return supervise(
      this.#supervision,
      signal,
      (healthy) =>
        this.#gate.run((leading) => {
          healthy();
          return this.#lead(leading);
        }, signal),
      (error, delayMs) =>
        this.#supervision.log.error('leader election failed', {
          gate: this.name,
          error: describe(error),
          retryInMs: Math.round(delayMs),
        }),
    );
  }

  async #lead(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#leading = signal;
    const stopped = this.#stopMembersOnAbort(signal);
    for (const [member, { ordered }] of this.#members) if (!ordered) void member.start();
    for (const [member, { ordered }] of this.#members) {
      if (!ordered) continue;
      if (signal.aborted || this.#closed) break;
      await member.start();
    }
    await stopped;
  }

  /**
   * When `signal` aborts, aborts the work of all members synchronously, because no write may start after that. Resolves once that work
   * has settled.
   */
  #stopMembersOnAbort(signal: AbortSignal): Promise<unknown> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#leading = undefined;
        const state = this.#closed ? 'stopped' : 'waiting';
        resolve(Promise.all([...this.#members.keys()].map((member) => member.stop(state))));
      };
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
