import type { KubeObject, Resource } from '../../api/object.ts';
import { pods, roles } from '../../api/resources.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import { own } from '../../kit/json-value.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isAlreadyExists, isDryRunUnsupported, isForbidden, TransportError } from '../../kube/errors.ts';
import { isRefusal } from '../../rbac/applier.ts';
import { refusalCause, unknownFieldsIn } from '../policy/refusal-text.ts';

/** Of one dry run: a slow webhook must not delay the status, for which requests wait. */
const limitMs = 2000;
/** Without dry runs after a 429 or no answer: each could occupy a worker for `limitMs`. */
const pauseMs = 10_000;
/** Templates have similar rules, and an answer about a Role takes the API server 100 ms. */
const maxRoleAgeMs = 30_000;
const maxRoles = 1000;

/** Without the RoleBinding, which needs the stored Role. */
export interface GrantObjects {
  readonly pod?: KubeObject;
  readonly role: KubeObject;
}

export type DryRunAnswer =
  /** `ignored`: the fields of the pod that the API server drops, in its words. */
  | { readonly kind: 'accepted'; readonly ignored?: string }
  /** `isInvalid`: until the object changes. */
  | { readonly kind: 'refused'; readonly object: 'pod' | 'Role'; readonly cause: string; readonly isInvalid: boolean }
  /** `mayAnswerLater`: false if a webhook does not support dry runs. */
  | { readonly kind: 'unanswered'; readonly mayAnswerLater: boolean };

const unanswered: DryRunAnswer = { kind: 'unanswered', mayAnswerLater: true };
const accepted: DryRunAnswer = { kind: 'accepted' };

/** Asks the API server by dry runs whether it would create the Pod, then the Role. */
export class GrantDryRuns {
  readonly #deps: { readonly client: Pick<Client, 'create'>; readonly clock: Clock };
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** By the digest of namespace and rules. */
  readonly #roles = new RecentMap<string, { readonly answer: DryRunAnswer; readonly askedMs: number }>(maxRoles);

  constructor(deps: { readonly client: Pick<Client, 'create'>; readonly clock: Clock }) {
    this.#deps = deps;
  }

  /** Takes at most about 6 s. Rejects if this replica no longer leads. */
  async ask({ pod, role }: GrantObjects, signal: AbortSignal): Promise<DryRunAnswer> {
    const aboutPod = pod ? await this.#askPod(pod, signal) : accepted;
    if (aboutPod.kind !== 'accepted') return aboutPod;
    const aboutRole = await this.#askRole(role, signal);
    return aboutRole.kind === 'accepted' ? aboutPod : aboutRole;
  }

  async #askPod(pod: KubeObject, signal: AbortSignal): Promise<DryRunAnswer> {
    const strict = await this.#send(pods, pod, signal, 'Strict');
    if (strict.kind !== 'accepted' || strict.ignored === undefined) return strict;
    const answer = await this.#send(pods, pod, signal);
    return answer.kind === 'accepted' ? strict : answer;
  }

  async #askRole(role: KubeObject, signal: AbortSignal): Promise<DryRunAnswer> {
    const askedMs = this.#deps.clock.monotonic();
    const key = sha256Hex(canonicalJson([role.metadata.namespace, own(role, 'rules')]));
    const cached = this.#roles.get(key);
    if (cached && cached.askedMs > askedMs - maxRoleAgeMs) return cached.answer;
    const answer = await this.#send(roles, role, signal);
    if (answer.kind !== 'unanswered') this.#roles.set(key, { answer, askedMs });
    return answer;
  }

  /** `ignored` if strict validation rejects the object because of unknown fields. */
  async #send(
    resource: Resource,
    object: KubeObject,
    signal: AbortSignal,
    fieldValidation?: 'Strict',
  ): Promise<DryRunAnswer> {
    const { client, clock } = this.#deps;
    if (clock.monotonic() < this.#pausedUntilMs) return unanswered;
    const limit = new AbortController();
    const cancel = clock.schedule(limitMs, () => limit.abort(new TransportError('time limit', undefined, false)));
    try {
      await client.create(resource, object, {
        dryRun: true,
        ...(fieldValidation ? { fieldValidation } : {}),
        signal: AbortSignal.any([signal, limit.signal]),
      });
      return accepted;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ApiError || error instanceof TransportError)) throw error;
      if (isAlreadyExists(error)) return accepted;
      if (isDryRunUnsupported(error)) return { kind: 'unanswered', mayAnswerLater: false };
      if (isRefusal(error) && !isAboutNamespace(error)) {
        const ignored = unknownFieldsIn(error.why);
        if (ignored !== undefined) return { kind: 'accepted', ignored };
        const isPod = resource === pods;
        return {
          kind: 'refused',
          object: isPod ? 'pod' : 'Role',
          cause: refusalCause(error.why),
          isInvalid: isPod && !isForbidden(error),
        };
      }
      if (error instanceof TransportError || error.code === 429) this.#pausedUntilMs = clock.monotonic() + pauseMs;
      return unanswered;
    } finally {
      cancel();
    }
  }
}

/** The namespace is gone or going, and the template with it. */
const isAboutNamespace = ({ code, message }: ApiError): boolean =>
  code === 404 || /because it is being terminated/.test(message);
