import type { Resource } from '../api/object.ts';
import type { Cancel, Clock } from '../kit/clock.ts';
import { isRecord, own, strings } from '../kit/json-value.ts';
import { ApiError, isUnauthorized } from './errors.ts';
import type { Transport } from './transport.ts';

/**
 * Why a watch is checked. `connection`: its connection may be dead. `permission`: the server may no longer allow the watch; an API server
 * checks the permission only when a watch starts.
 */
type WatchDoubt = 'connection' | 'permission';

/** An open watch that a `WatchProbe` checks. It is the same object for each connection of the watch. */
export interface ProbedWatch {
  readonly resource: Resource;
  /** One namespace; absent: all namespaces. */
  readonly namespace?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Called when the API server has answered the review of the watch's namespace, but not with 401, 429, or a 5xx. */
  alive(): void;
  /** Opens the watch anew, to find out whether the doubt is justified. */
  check(doubt: WatchDoubt): void;
}

/** The connections and the clock of a probe. */
export interface WatchProbeOptions {
  readonly transport: Pick<Transport, 'request'>;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/**
 * Time between two reviews of a namespace if at most two are reviewed, milliseconds. A lost permission shows within 10 s, the review
 * included.
 */
const PERIOD_MS = 8_000;
/**
 * Number of reviews in one period. With more namespaces, the time between two reviews of one namespace grows, not the number of calls. With
 * at most this number, one review follows the other without a pause; with more, the reviews are spread over the period.
 */
const REVIEWS_A_PERIOD = 2;
/**
 * Pause before the next review after a failed review, milliseconds. After a lost permission, also the pause before the reviews of all
 * namespaces: an administrator often withdraws several permissions at once.
 */
const SHORT_PAUSE_MS = 250;
/** Time limit of a review, milliseconds. With a period and SPREAD_MS, two of them take less than 20 s. */
const ANSWER_MS = 4_000;
/**
 * Time over which the probe distributes its checks of connections, milliseconds, so that the new connections do not reach the API server
 * together.
 */
const SPREAD_MS = 3_000;
/**
 * The namespace that is reviewed for watches of all namespaces. A review of a namespace also shows the rules of its Roles, which do not
 * apply to such watches; `default` normally has none.
 */
const CLUSTER_WIDE = 'default';
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';

/**
 * Asks one cluster every few seconds whether it still answers and still allows the watches, with one SelfSubjectRulesReview for all watches
 * of a namespace. Such a review is needed because an API server does not end an open watch when its permission is withdrawn. The answer
 * proves nothing: if a watch seems to have no permission, the probe calls its `check`, which opens the watch anew.
 *
 * A review fails if no usable answer arrives within 4 s, which puts the connections in doubt, or if the answer is 401, which puts the
 * permissions in doubt. After two failed reviews in a row, the probe checks every watch once, for the doubt of the second. It checks every
 * watch again if a later review fails with the other doubt, or if, after a review that succeeded, two reviews in a row fail.
 */
export class WatchProbe {
  readonly #options: WatchProbeOptions;
  /** By reviewed namespace. The order is that of the reviews: the first is next. */
  readonly #watches = new Map<string, Set<ProbedWatch>>();
  /** Watches that the rules of an answer have allowed. */
  readonly #allowed = new WeakSet<ProbedWatch>();
  /** Whether a review has failed since the last one that succeeded. */
  #hasFailed = false;
  /** What failed reviews put in doubt; undefined after a review that succeeded. */
  #doubt: WatchDoubt | undefined;
  /** Watches that were checked because no rule allowed them; removed when a rule allows them again. */
  readonly #checked = new WeakSet<ProbedWatch>();
  readonly #closed = new AbortController();
  #cancel: Cancel | undefined;
  #isReviewing = false;
  /** Number of next reviews that begin without a pause. */
  #immediate = 0;
  /** Number of next reviews that begin after SHORT_PAUSE_MS. */
  #shortPauses = 0;

  constructor(options: WatchProbeOptions) {
    this.#options = options;
  }

  /** Checks an open watch until the returned function is called. */
  add(watch: ProbedWatch): Cancel {
    const namespace = watch.namespace ?? CLUSTER_WIDE;
    const known = this.#watches.get(namespace);
    const joined = known ?? new Set();
    this.#watches.set(namespace, joined.add(watch));
    // With this namespace, the pause becomes shorter, so schedule again.
    if (!known && this.#watches.size === REVIEWS_A_PERIOD + 1) this.#stop();
    this.#schedule();
    return () => {
      joined.delete(watch);
      if (joined.size === 0 && this.#watches.get(namespace) === joined) this.#watches.delete(namespace);
      if (this.#watches.size === 0) this.#stop();
    };
  }

  /** Stops the reviews. */
  close(): void {
    this.#closed.abort(new Error('the cluster was closed'));
    this.#stop();
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#immediate = 0;
  }

  #schedule(): void {
    if (this.#cancel || this.#isReviewing || this.#closed.signal.aborted) return;
    this.#cancel = this.#options.clock.schedule(this.#shortPauses > 0 ? SHORT_PAUSE_MS : this.#pauseMs(), () => {
      this.#cancel = undefined;
      void this.#review();
    });
  }

  /**
   * Milliseconds until the next review. Without `#immediate`, it begins at a multiple of the pause on the monotonic clock, so that the
   * probes of all clusters review together: waking an idle process costs more processor time than a review.
   */
  #pauseMs(): number {
    if (this.#immediate > 0) return 0;
    const pauseMs = this.#isSpread() ? PERIOD_MS / REVIEWS_A_PERIOD : PERIOD_MS;
    return pauseMs - (this.#options.clock.monotonic() % pauseMs);
  }

  #isSpread(): boolean {
    return this.#watches.size > REVIEWS_A_PERIOD;
  }

  async #review(): Promise<void> {
    const [next] = this.#watches;
    if (!next) return;
    const [namespace, watches] = next;
    this.#watches.delete(namespace);
    this.#watches.set(namespace, watches);
    this.#isReviewing = true;
    if (this.#immediate === 0) this.#immediate = this.#isSpread() ? 1 : this.#watches.size;
    this.#immediate--;
    if (this.#shortPauses > 0) this.#shortPauses--;
    const answer = await this.#ask(namespace);
    this.#isReviewing = false;
    if (this.#closed.signal.aborted) return;
    this.#handleAnswer(answer, [...watches]);
    if (this.#watches.size > 0) this.#schedule();
  }

  /**
   * Reviews a namespace. Resolves to the rules; if the review failed, to what that puts in doubt. Undefined after 429 or 5xx, which puts
   * nothing in doubt.
   */
  async #ask(namespace: string): Promise<RulesAnswer | WatchDoubt | undefined> {
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    };
    const call = { method: 'POST', path: REVIEWS, body, retry: 'never', timeoutMs: ANSWER_MS } as const;
    try {
      return rulesAnswer(await this.#options.transport.request({ ...call, signal: this.#closed.signal }));
    } catch (error) {
      if (!(error instanceof ApiError)) return 'connection';
      if (isUnauthorized(error)) return 'permission';
      // The API server may not serve reviews, or deny them to this user. It answered, but its answer says nothing about the watches.
      return error.code >= 500 || error.code === 429 ? undefined : { rules: [], complete: false };
    }
  }

  #handleAnswer(answer: RulesAnswer | WatchDoubt | undefined, watches: readonly ProbedWatch[]): void {
    if (answer === undefined) return;
    if (typeof answer === 'string') {
      this.#onFailed(answer);
      return;
    }
    this.#hasFailed = false;
    this.#doubt = undefined;
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

  /**
   * Handles a failed review. A single failure may be a slow answer, a connection that just closed, or a token that was just replaced, so
   * the next review follows soon. After a second failure in a row, checks every watch.
   */
  #onFailed(doubt: WatchDoubt): void {
    if (doubt === this.#doubt) return;
    if (!this.#hasFailed) {
      this.#hasFailed = true;
      this.#shortPauses = Math.max(1, this.#shortPauses);
      return;
    }
    this.#doubt = doubt;
    const { clock, random } = this.#options;
    for (const joined of this.#watches.values()) {
      for (const watch of joined) {
        const check = (): void => {
          if (this.#doubt === doubt && joined.has(watch) && !this.#closed.signal.aborted) watch.check(doubt);
        };
        if (doubt === 'connection') clock.schedule(random() * SPREAD_MS, check);
        else check();
      }
    }
  }

  /** Checks the watch, unless the probe has checked it since a rule last allowed it. Returns whether this call checked it. */
  #checkPermission(watch: ProbedWatch): boolean {
    if (this.#checked.has(watch)) return false;
    this.#checked.add(watch);
    watch.check('permission');
    return true;
  }
}

/** A rule that allows the user verbs on resources. */
interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
}

/** The answer to a SelfSubjectRulesReview. */
interface RulesAnswer {
  readonly rules: readonly Rule[];
  /**
   * False if the answer may lack rules, for example because an authorizer of the API server, such as a webhook, cannot list its rules. Then
   * the probe checks a watch only if the rules of an earlier answer allowed it.
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
