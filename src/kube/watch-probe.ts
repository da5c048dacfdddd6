import type { Resource } from '../api/object.ts';
import type { Cancel, Clock } from '../kit/clock.ts';
import { isRecord, own, strings } from '../kit/json-value.ts';
import { ApiError, isUnauthorized } from './errors.ts';
import type { Transport } from './transport.ts';

/** The same object for each connection of the watch. */
export interface ProbedWatch {
  readonly resource: Resource;
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** The API server has answered a review of its namespace, other than with 401, 429, or a 5xx. */
  alive(): void;
  /** Opens the watch anew, to find out whether the API server still allows it. */
  check(): void;
}

export interface WatchProbeOptions {
  readonly transport: Pick<Transport, 'request'>;
  readonly clock: Clock;
}

/** Between two reviews of a namespace, so that a lost permission shows within 10 s. */
const PERIOD_MS = 8_000;
/** In turn; with more namespaces, each is reviewed less often, so that the number of calls stays. */
const REVIEWS_A_PERIOD = 2;
/** After a rejected token, and after a lost permission, which is rarely the only one. */
const SHORT_PAUSE_MS = 250;
const ANSWER_MS = 4_000;
/** Reviewed for watches of all namespaces: it normally has no Roles, whose rules do not apply. */
const CLUSTER_WIDE = 'default';
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';

/**
 * Asks one cluster every few seconds, with one SelfSubjectRulesReview for each namespace, whether
 * it still allows the watches: an API server does not end an open watch when its permission is
 * withdrawn. An answer is only a hint, after which `check` opens the watch anew. Two answers with
 * 401 in a row check every watch once.
 */
export class WatchProbe {
  readonly #options: WatchProbeOptions;
  /** By namespace, in the order of their reviews. */
  readonly #watches = new Map<string, Set<ProbedWatch>>();
  /** Watches that the rules of an answer have allowed. */
  readonly #allowed = new WeakSet<ProbedWatch>();
  /** Reviews that were answered with 401 since the last one that succeeded. */
  #rejected = 0;
  /** Checked because no rule allowed them; removed when a rule does again. */
  readonly #checked = new WeakSet<ProbedWatch>();
  readonly #closed = new AbortController();
  #cancel: Cancel | undefined;
  #isReviewing = false;
  /** Number of next reviews after SHORT_PAUSE_MS. */
  #shortPauses = 0;

  constructor(options: WatchProbeOptions) {
    this.#options = options;
  }

  /** Checks the watch until the returned function is called. */
  add(watch: ProbedWatch): Cancel {
    const namespace = watch.namespace ?? CLUSTER_WIDE;
    const known = this.#watches.get(namespace);
    const joined = known ?? new Set();
    this.#watches.set(namespace, joined.add(watch));
    // With this namespace, the usual pause may become shorter.
    if (!known && this.#shortPauses === 0) this.#stop();
    this.#schedule();
    return () => {
      joined.delete(watch);
      if (joined.size === 0 && this.#watches.get(namespace) === joined) this.#watches.delete(namespace);
      if (this.#watches.size === 0) this.#stop();
    };
  }

  close(): void {
    this.#closed.abort(new Error('the cluster was closed'));
    this.#stop();
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #schedule(): void {
    if (this.#cancel || this.#isReviewing || this.#closed.signal.aborted) return;
    this.#cancel = this.#options.clock.schedule(this.#shortPauses > 0 ? SHORT_PAUSE_MS : this.#pauseMs(), () => {
      this.#cancel = undefined;
      void this.#review();
    });
  }

  /** Multiples of the pause: the probes of all clusters wake an idle process together. */
  #pauseMs(): number {
    const pauseMs = PERIOD_MS / Math.min(this.#watches.size, REVIEWS_A_PERIOD);
    return pauseMs - (this.#options.clock.monotonic() % pauseMs);
  }

  async #review(): Promise<void> {
    const [next] = this.#watches;
    if (!next) return;
    const [namespace, watches] = next;
    this.#watches.delete(namespace);
    this.#watches.set(namespace, watches);
    this.#isReviewing = true;
    if (this.#shortPauses > 0) this.#shortPauses--;
    const answer = await this.#ask(namespace);
    this.#isReviewing = false;
    if (this.#closed.signal.aborted) return;
    this.#handleAnswer(answer, [...watches]);
    if (this.#watches.size > 0) this.#schedule();
  }

  /** Undefined if nothing follows for the watches: after no answer, 429, or 5xx. */
  async #ask(namespace: string): Promise<RulesAnswer | 'rejected' | undefined> {
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    };
    const call = { method: 'POST', path: REVIEWS, body, retry: 'never', timeoutMs: ANSWER_MS } as const;
    try {
      return rulesAnswer(await this.#options.transport.request({ ...call, signal: this.#closed.signal }));
    } catch (error) {
      if (!(error instanceof ApiError)) return undefined;
      if (isUnauthorized(error)) return 'rejected';
      // Reviews may not be served, or denied to this user: that says nothing about the watches.
      return error.code >= 500 || error.code === 429 ? undefined : { rules: [], complete: false };
    }
  }

  #handleAnswer(answer: RulesAnswer | 'rejected' | undefined, watches: readonly ProbedWatch[]): void {
    if (answer === undefined) return;
    if (answer === 'rejected') {
      this.#onRejected();
      return;
    }
    this.#rejected = 0;
    for (const watch of watches) {
      watch.alive();
      if (isAllowed(answer, watch)) {
        this.#allowed.add(watch);
        this.#checked.delete(watch);
      } else if (answer.complete || this.#allowed.has(watch)) {
        if (this.#checkPermission(watch)) this.#shortPauses = this.#watches.size;
      }
    }
  }

  /** The first may be due to a token that was just replaced; the second checks every watch. */
  #onRejected(): void {
    this.#rejected++;
    if (this.#rejected === 1) this.#shortPauses = Math.max(1, this.#shortPauses);
    if (this.#rejected !== 2) return;
    for (const joined of this.#watches.values()) for (const watch of joined) watch.check();
  }

  /** Once, until a rule allows the watch again. Returns whether this call checked it. */
  #checkPermission(watch: ProbedWatch): boolean {
    if (this.#checked.has(watch)) return false;
    this.#checked.add(watch);
    watch.check();
    return true;
  }
}

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
}

interface RulesAnswer {
  readonly rules: readonly Rule[];
  /**
   * If false, an authorizer such as a webhook may hide rules: only losses against earlier rules
   * count.
   */
  readonly complete: boolean;
}

function rulesAnswer(review: unknown): RulesAnswer {
  const status = own(review, 'status');
  const listed = own(status, 'resourceRules');
  if (!Array.isArray(listed)) return { rules: [], complete: false };
  const rules = listed.filter(isRecord).map((rule) => ({
    verbs: strings(own(rule, 'verbs')),
    apiGroups: strings(own(rule, 'apiGroups')),
    resources: strings(own(rule, 'resources')),
    resourceNames: strings(own(rule, 'resourceNames')),
  }));
  return { rules, complete: own(status, 'incomplete') !== true };
}

function isAllowed({ rules }: RulesAnswer, { resource, fieldSelector }: ProbedWatch): boolean {
  const name = /^metadata\.name=([^,]+)$/.exec(fieldSelector ?? '')?.[1];
  const includes = (list: readonly string[], value: string): boolean => list.includes('*') || list.includes(value);
  return rules.some(
    ({ verbs, apiGroups, resources, resourceNames }) =>
      includes(verbs, 'watch') &&
      includes(apiGroups, resource.group) &&
      includes(resources, resource.plural) &&
      (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name))),
  );
}
