import type { TemplateKind } from '../../api/access/names.ts';
import type { AuthorAttestation, TemplateVersion } from '../../api/access/template-spec.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { lackingRights } from '../admission-reads.ts';
import { rulesViolation } from '../policy/granted-rules.ts';
import type { Violation } from '../policy/policy.ts';
import type { Caller } from '../policy/request-policy.ts';
import { authorLacks, handsOutPrivilege, type Right, rightsHandedOut } from '../policy/template-rights.ts';
import type { Signer } from '../signing/signer.ts';
import type { TemplateView } from '../stores/access-views.ts';

/** How far the creation of a template may be before and after its first stamp, by the clocks of two machines in whole seconds. */
const skewMs = 2000;
const validMs = 10_000;

/** Whom templates are granted for: an author whom our webhook has seen, and who may still do what the template hands out. */
export class TemplateAuthors {
  readonly #deps: TemplateAuthorsDeps;

  constructor(deps: TemplateAuthorsDeps) {
    this.#deps = deps;
  }

  /** Why nothing may be granted through the template; undefined when it may. Rejects while that cannot be told. */
  async violation(template: TemplateView, maxAgeMs: number, signal: AbortSignal): Promise<Violation | undefined> {
    const { spec, namespace, name } = template;
    const { kind, rights, trustExisting } = this.#deps;
    if (!spec.author) {
      return trustExisting && !handsOutPrivilege(spec)
        ? undefined
        : refuse('nobody vouches for the template: it was written while the webhooks of drawbridge were away');
    }
    const stamp = this.attestationOf(template);
    if (!stamp || !(await this.#isProven(template, stamp, signal))) {
      return refuse('spec.author was not written by drawbridge for the template as it is');
    }
    const unfit = rulesViolation(spec.accessConfig.rules);
    if (unfit) return unfit;
    const handedOut = rightsHandedOut({ kind, name, spec });
    const lacking = await rights.lacking(spec.author, namespace, handedOut, maxAgeMs, signal);
    return authorLacks(spec.author.username, namespace, lacking);
  }

  /** What the signature in the status has to be about; undefined without an author. */
  attestationOf({ spec, namespace, name, uid, generation }: TemplateView): AuthorAttestation | undefined {
    if (!spec.author) return undefined;
    const { signature: _, ...author } = spec.author;
    return { kind: this.#deps.kind, namespace, name, version: { uid, generation }, author };
  }

  async #isProven(template: TemplateView, stamp: AuthorAttestation, signal: AbortSignal): Promise<boolean> {
    const { signer } = this.#deps;
    const { spec, generation, authorSignature, createdAtMs } = template;
    if (signer.isOurAuthorByCachedKeys(stamp, authorSignature)) return true;
    if (generation > 1) return signer.isOurAuthor(stamp, spec.author?.signature, signal);
    // The first stamp does not know the uid: one of an earlier template of this name is told by its age.
    const age = createdAtMs - (parseTime(stamp.author.time) ?? Number.NaN);
    if (!(age >= -skewMs && age <= validMs)) return false;
    for (const version of [{ spec }, legacyFirstVersion]) {
      const first = { ...stamp, version };
      if (signer.isOurAuthorByCachedKeys(first, authorSignature)) return true;
      if (await signer.isOurAuthor(first, spec.author?.signature, signal)) return true;
    }
    return false;
  }
}

interface TemplateAuthorsDeps {
  readonly kind: TemplateKind;
  readonly signer: Signer;
  readonly rights: AuthorRights;
  /** Whether a template that names no author may be granted through all the same. */
  readonly trustExisting: boolean;
}

/** What servers signed before they signed the spec. None does so any more, and age tells what is left of it. */
const legacyFirstVersion: TemplateVersion = { uid: '', generation: 1 };

const refuse = (why: string): Violation => ({
  code: 'AuthorUnknown',
  message: `${why}; let somebody change it who may do what it hands out, if only spec.author.username, which becomes their own`,
  field: 'spec.author',
  status: 403,
});

interface Answer {
  readonly held: boolean;
  readonly monotonicMs: number;
}

/** An answer of this age is not worth keeping, milliseconds. */
const maxAnswerAgeMs = 60_000;

/**
 * What authors may do, by SubjectAccessReviews whose answers are kept for a while: many templates of one author in one namespace ask
 * the same, and a grant must not wait for them.
 */
export class AuthorRights {
  readonly #deps: { readonly client: Client; readonly clock: Clock };
  /** Oldest first. */
  readonly #answers = new Map<string, Answer>();

  constructor(deps: { readonly client: Client; readonly clock: Clock }) {
    this.#deps = deps;
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
    const youngerThan = this.#deps.clock.monotonic() - Math.min(maxAgeMs, maxAnswerAgeMs);
    const known = (right: Right): Answer | undefined => {
      const answer = this.#answers.get(keyOf(right));
      return answer && answer.monotonicMs > youngerThan ? answer : undefined;
    };
    const unknown = rights.filter((right) => known(right) === undefined);
    // The age counts from before the question.
    const monotonicMs = this.#deps.clock.monotonic();
    const refused = new Set(
      await lackingRights(this.#deps.client, { username, uid, groups }, namespace, unknown, signal),
    );
    const lacking = rights.filter((right) => refused.has(right) || known(right)?.held === false);
    for (const right of unknown) this.#keep(keyOf(right), { held: !refused.has(right), monotonicMs });
    return lacking;
  }

  #keep(key: string, answer: Answer): void {
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    for (const [old, { monotonicMs }] of this.#answers) {
      if (monotonicMs > answer.monotonicMs - maxAnswerAgeMs) break;
      this.#answers.delete(old);
    }
  }
}
