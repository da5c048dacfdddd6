import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { lackingRights } from '../admission-reads.ts';
import type { Caller } from '../policy/request-policy.ts';
import type { Right } from '../policy/template-rights.ts';

interface Answer {
  readonly held: boolean;
  readonly monotonicMs: number;
}

/** An answer of this age is not worth keeping, milliseconds. */
const oldestMs = 60_000;

/**
 * What authors may do, by SubjectAccessReviews whose answers are kept for a while: many templates of one author in one namespace ask
 * the same, and a grant must not wait for them.
 */
export class AuthorRights {
  readonly #client: Client;
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #answers = new Map<string, Answer>();

  constructor({ client, clock }: { readonly client: Client; readonly clock: Clock }) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Those of `rights` that the author does not have, by answers not older than `maxAgeMs`, at most a minute. */
  async lacking(
    author: Caller,
    namespace: string,
    rights: readonly Right[],
    maxAgeMs: number,
    signal: AbortSignal,
  ): Promise<Right[]> {
    const { username, uid, groups } = author;
    const keyOf = (right: Right): string => JSON.stringify([namespace, username, uid, groups, right]);
    const youngerThan = this.#clock.monotonic() - Math.min(maxAgeMs, oldestMs);
    const known = (right: Right): Answer | undefined => {
      const answer = this.#answers.get(keyOf(right));
      return answer && answer.monotonicMs > youngerThan ? answer : undefined;
    };
    const unknown = rights.filter((right) => known(right) === undefined);
    // The age counts from before the question.
    const monotonicMs = this.#clock.monotonic();
    const refused = new Set(await lackingRights(this.#client, { username, uid, groups }, namespace, unknown, signal));
    const lacking = rights.filter((right) => refused.has(right) || known(right)?.held === false);
    for (const right of unknown) this.#keep(keyOf(right), { held: !refused.has(right), monotonicMs });
    return lacking;
  }

  #keep(key: string, answer: Answer): void {
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    for (const [old, { monotonicMs }] of this.#answers) {
      if (monotonicMs > answer.monotonicMs - oldestMs) break;
      this.#answers.delete(old);
    }
  }
}
