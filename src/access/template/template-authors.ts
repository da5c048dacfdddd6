import type { TemplateKind } from '../../api/access/names.ts';
import type { Clock } from '../../kit/clock.ts';
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
import type { TemplateView } from '../stores/access-views.ts';

/** Verifies that the author still holds what the template hands out. */
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
      const problem = `template ${name} has no author: it was written while the API server did not call the webhooks of drawbridge`;
      return trustExisting && !handsOutPrivilege(spec) ? undefined : refuse('AuthorUnknown', problem, kind, template);
    }
    const [rulesProblem] = rulesViolations(spec.accessConfig.rules);
    if (rulesProblem) return rulesProblem;
    const handedOut = permissionsHandedOut({ kind, name, spec });
    const lacking = await permissions.missing(spec.author, namespace, handedOut, maxAgeMs, signal);
    return authorPermissionsViolation(spec.author.username, namespace, lacking, updateRemedy(kind, template));
  }
}

interface TemplateAuthorsDeps {
  readonly kind: TemplateKind;
  readonly permissions: AuthorPermissions;
  /** Grants through templates without an author, unless they set `allowPrivilegedPod`. */
  readonly trustExisting: boolean;
}

/** How to become the author. For an unchanged manifest, `kubectl apply` sends no update. */
const updateRemedy = (kind: TemplateKind, { namespace, name }: TemplateView): string =>
  `to update it, for example: kubectl patch ${kind.toLowerCase()} ${name} -n ${namespace} --type=merge -p '{"spec":{"author":{"username":"me"}}}'`;

/** Of a version that no policy certifies. */
export const versionUncertified = (kind: TemplateKind, template: TemplateView): Violation =>
  refuse(
    'PoliciesMissing',
    `this version of template ${template.name} was written before the admission policies of drawbridge were proven to be in force, so nothing certifies its author`,
    kind,
    template,
  );

const refuse = (code: Violation['code'], problem: string, kind: TemplateKind, template: TemplateView): Violation => ({
  code,
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
