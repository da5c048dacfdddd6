import type { TemplateKind } from '../../api/access/names.ts';
import type { AuthorAttestation } from '../../api/access/template-spec.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { lackingPermissions } from '../admission-reads.ts';
import { rulesViolations } from '../policy/granted-rules.ts';
import type { Violation } from '../policy/policy.ts';
import type { Caller } from '../policy/request-policy.ts';
import {
  authorPermissionsViolation,
  handsOutPrivilege,
  type Permission,
  permissionsHandedOut,
} from '../policy/template-permissions.ts';
import type { Signer } from '../signing/signer.ts';
import type { TemplateView } from '../stores/access-views.ts';

/** A template may be created this much before its first signature: clocks differ, and round. */
const skewMs = 2000;
/** A template may be created this much after its first signature. */
const validMs = 10_000;

/** Verifies that our webhook signed the author, who still holds what the template hands out. */
export class TemplateAuthors {
  readonly #deps: TemplateAuthorsDeps;

  constructor(deps: TemplateAuthorsDeps) {
    this.#deps = deps;
  }

  /**
   * Cached permissions may be `maxAgeMs` old, a minute at most. Codes `AuthorUnknown`,
   * `InvalidTemplate` and `AuthorLacksRights`.
   */
  async violation(template: TemplateView, maxAgeMs: number, signal: AbortSignal): Promise<Violation | undefined> {
    const { spec, namespace, name } = template;
    const { kind, permissions, trustExisting } = this.#deps;
    if (!spec.author) {
      return trustExisting && !handsOutPrivilege(spec)
        ? undefined
        : refuse(
            `template ${name} has no author: it was written while the API server did not call the webhooks of drawbridge`,
            kind,
            template,
          );
    }
    const attestation = this.attestationOf(template);
    if (!attestation || !(await this.#isProven(template, attestation, signal))) {
      return refuse(
        `template ${name} has no verified author: spec.author of this version has no valid signature of the webhook of drawbridge`,
        kind,
        template,
      );
    }
    const [rulesProblem] = rulesViolations(spec.accessConfig.rules);
    if (rulesProblem) return rulesProblem;
    const handedOut = permissionsHandedOut({ kind, name, spec });
    const lacking = await permissions.missing(spec.author, namespace, handedOut, maxAgeMs, signal);
    return authorPermissionsViolation(spec.author.username, namespace, lacking, updateRemedy(kind, template));
  }

  /** What the signature in the status covers; undefined without an author. */
  attestationOf({ spec, namespace, name, uid, generation }: TemplateView): AuthorAttestation | undefined {
    if (!spec.author) return undefined;
    const { signature: _, ...author } = spec.author;
    return { kind: this.#deps.kind, namespace, name, version: { uid, generation }, author };
  }

  async #isProven(template: TemplateView, attestation: AuthorAttestation, signal: AbortSignal): Promise<boolean> {
    const { signer } = this.#deps;
    const { spec, generation, authorSignature, createdAtMs } = template;
    if (signer.isOurAuthorByCachedKeys(attestation, authorSignature)) return true;
    if (generation > 1) return signer.isOurAuthor(attestation, spec.author?.signature, signal);
    // The first signature does not cover the uid: its age excludes an earlier template.
    const age = createdAtMs - (parseTime(attestation.author.time) ?? Number.NaN);
    if (!(age >= -skewMs && age <= validMs)) return false;
    const first = { ...attestation, version: { spec } };
    if (signer.isOurAuthorByCachedKeys(first, authorSignature)) return true;
    return signer.isOurAuthor(first, spec.author?.signature, signal);
  }
}

interface TemplateAuthorsDeps {
  readonly kind: TemplateKind;
  readonly signer: Signer;
  readonly permissions: AuthorPermissions;
  /** Grants through templates without an author, unless they set `allowPrivilegedPod`. */
  readonly trustExisting: boolean;
}

/** How to become the author. For an unchanged manifest, `kubectl apply` sends no update. */
const updateRemedy = (kind: TemplateKind, { namespace, name }: TemplateView): string =>
  `to update it, for example: kubectl patch ${kind.toLowerCase()} ${name} -n ${namespace} --type=merge -p '{"spec":{"author":{"username":"me"}}}'`;

const refuse = (problem: string, kind: TemplateKind, template: TemplateView): Violation => ({
  code: 'AuthorUnknown',
  message: `${problem}; ask someone who holds the permissions that the template hands out ${updateRemedy(kind, template)}`,
  field: 'spec.author',
  status: 403,
});

interface Answer {
  readonly isHeld: boolean;
  /** Of the call, milliseconds on the monotonic clock. */
  readonly monotonicMs: number;
}

/** Of a cached answer. */
const maxAnswerAgeMs = 60_000;

/** Permissions of authors, by SubjectAccessReviews. Cached: a grant should not wait for them. */
export class AuthorPermissions {
  readonly #deps: { readonly client: Client; readonly clock: Clock };
  /** Oldest first. */
  readonly #answers = new Map<string, Answer>();

  constructor(deps: { readonly client: Client; readonly clock: Clock }) {
    this.#deps = deps;
  }

  /** Cached answers may be `maxAgeMs` old, and a minute at most. */
  async missing(
    author: Caller,
    namespace: string,
    permissions: readonly Permission[],
    maxAgeMs: number,
    signal: AbortSignal,
  ): Promise<Permission[]> {
    const { username, uid, groups } = author;
    const keyOf = (permission: Permission): string => JSON.stringify([namespace, username, uid, groups, permission]);
    const oldestMs = this.#deps.clock.monotonic() - Math.min(maxAgeMs, maxAnswerAgeMs);
    const cached = (permission: Permission): Answer | undefined => {
      const answer = this.#answers.get(keyOf(permission));
      return answer && answer.monotonicMs > oldestMs ? answer : undefined;
    };
    const answers = new Map(permissions.map((permission) => [permission, cached(permission)]));
    const ask = async (asked: readonly Permission[]): Promise<void> => {
      // The age of an answer counts from before the call.
      const monotonicMs = this.#deps.clock.monotonic();
      const caller = { username, uid, groups };
      const denied = new Set(await lackingPermissions(this.#deps.client, caller, namespace, asked, signal));
      for (const permission of asked) {
        const answer = { isHeld: !denied.has(permission), monotonicMs };
        answers.set(permission, answer);
        this.#cache(keyOf(permission), answer);
      }
    };
    await ask(permissions.filter((permission) => answers.get(permission) === undefined));
    // What took one permission probably took others, which older answers would hide.
    const deniedMs = Math.max(
      ...[...answers.values()].map((answer) => (answer?.isHeld === false ? answer.monotonicMs : 0)),
    );
    await ask(
      permissions.filter((permission) => {
        const answer = answers.get(permission);
        return answer?.isHeld && answer.monotonicMs < deniedMs;
      }),
    );
    return permissions.filter((permission) => !answers.get(permission)?.isHeld);
  }

  #cache(key: string, answer: Answer): void {
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    for (const [cachedKey, { monotonicMs }] of this.#answers) {
      if (monotonicMs > answer.monotonicMs - maxAnswerAgeMs) break;
      this.#answers.delete(cachedKey);
    }
  }
}
