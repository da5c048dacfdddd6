import { accessOfRequest } from '../../api/access/kinds.ts';
import type { RequestedExtension } from '../../api/access/request-spec.ts';
import { apiVersionOf, type Resource } from '../../api/object.ts';
import type { Journal } from '../../audit/journal.ts';
import { type AuditRecord, decidingGroupsFirst } from '../../audit/record.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Store } from '../../kube/store.ts';
import type { Log } from '../../observe/log.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import { askedFields } from '../policy/asked-fields.ts';
import type { Violation } from '../policy/policy.ts';
import { byRequest } from '../stores/access-stores.ts';
import { accessEndMs, type RequestView } from '../stores/access-views.ts';
import type { VoteView } from '../stores/vote-view.ts';
import type { GrantMetrics } from './grant-metrics.ts';
import { type Cause, causeText, conditionOf } from './status.ts';
import type { JudgedVote } from './votes.ts';

/** Reports each step of a request and its access to the audit journal, Events, and metrics. */
export class GrantReporter {
  readonly #deps: GrantReporterDeps;

  constructor(deps: GrantReporterDeps) {
    this.#deps = deps;
  }

  /**
   * Create nothing before this resolves. Rejects with `AuditUnavailable`. The audit line lists the
   * requester's groups among `allowedGroups` first.
   */
  async granted(request: RequestView, allowedGroups: readonly string[]): Promise<void> {
    const votes = (request.grant?.votes ?? []).map((uid) => this.#auditVote(request, uid));
    await this.#deps.journal.append({
      ...this.#record(request, 'grant', 'granted', allowedGroups),
      ...askedFields(request.spec),
      ...(votes.length > 0 ? { votes } : {}),
      ...(request.spec.emergency ? { code: 'Emergency', message: 'emergency access without approvals' } : {}),
    });
    this.#deps.metrics.granted(request);
    if (!request.spec.emergency) return;
    const { requester, reason = '' } = request.spec;
    this.#event(
      request,
      'Warning',
      'EmergencyAccess',
      `the server granted ${requester?.username} emergency access without approvals, and another person must review it: ${reason}`,
      'Emergency',
    );
  }

  /** An Event only: `granted` wrote the audit line. */
  opened(request: RequestView): void {
    this.#event(
      request,
      'Normal',
      'AccessGranted',
      `${request.spec.requester?.username} may use pod ${request.grant?.pod.name} until ${request.grant?.expiresAt}`,
    );
  }

  reviewOverdue(request: RequestView): void {
    const { username } = request.spec.requester ?? {};
    const note = `no one reviewed the emergency access of ${username} in time; ${username} gets no further emergency access through this template until another person reviews this one`;
    this.#event(request, 'Warning', 'ReviewOverdue', note, 'Emergency');
  }

  /** Reports the vote that settled a review. Rejects with `AuditUnavailable`. */
  async reviewed(review: OwedReview, vote: VoteView): Promise<void> {
    const { resource } = accessOfRequest(review.requestKind).request;
    const { namespace, request: name, requestUid: uid } = review;
    await this.#deps.journal.append({
      event: 'review',
      verdict: 'reviewed',
      who: { user: review.user, uid: review.userUid, groups: [] },
      what: { operation: 'REVIEW', apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name, uid },
      template: review.template,
      templateUid: review.templateUid,
      templateGeneration: review.templateGeneration,
      votes: [auditVoteOf(vote)],
    });
    const { voter, decision, reason } = vote.spec;
    const verdict = decision === 'Approve' ? 'found it justified' : 'did not find it justified';
    this.#event(
      { namespace, name, uid },
      decision === 'Approve' ? 'Normal' : 'Warning',
      'EmergencyReviewed',
      `${voter?.username} reviewed the emergency access of ${review.user} and ${verdict}${reason === undefined ? '' : `: ${reason}`}`,
      'Emergency',
    );
  }

  /** Extend nothing before this resolves. Rejects with `AuditUnavailable`. */
  async journalExtension(request: RequestView, extension: JournaledExtension): Promise<void> {
    const { number, expiresAt, votes } = extension;
    const { by: duration, reason } = extension.asked;
    await this.#deps.journal.append({
      ...this.#record(request, 'grant', 'extended'),
      expiresAt,
      duration,
      ...(reason === undefined ? {} : { reason }),
      ...(votes.length > 0 ? { votes: votes.map(({ vote }) => auditVoteOf(vote)) } : {}),
      message: `extension ${number}`,
    });
  }

  /** An Event only: `journalExtension` wrote the audit line. */
  extended(request: RequestView, expiresAt: string): void {
    this.#event(request, 'Normal', 'AccessExtended', `access extended until ${expiresAt}`);
  }

  /** An Event only. Call it at each change of the cause. `untilMs` is epoch ms. */
  waits(request: RequestView, { code, message }: Violation, untilMs: number): void {
    this.#event(
      request,
      'Warning',
      code,
      `access cannot open yet; the request waits until ${formatTime(untilMs)}: ${message}`,
    );
  }

  /** An Event only. Call it at each change of the message. */
  notClosed(request: RequestView, message: string): void {
    this.#event(request, 'Warning', 'ResourceRefused', message);
  }

  /** Does not wait for the journal. */
  extensionRefused(request: RequestView, { code, message }: Violation): void {
    this.#appendInBackground({ ...this.#record(request, 'grant', 'denied'), code, message });
    this.#event(request, 'Warning', code, message);
  }

  /** Metrics only: `granted` wrote the audit line. */
  ready(request: RequestView): void {
    this.#deps.metrics.ready(request, this.#deps.clock.now());
  }

  /** Call it after the access is closed: revocation never waits for the journal. */
  revoked(request: RequestView, cause: Cause): void {
    const { ending, denial } = cause;
    const { revokedReason } = request.spec;
    const text = causeText(cause);
    this.#deps.metrics.revoked(request, ending, accessEndMs(request), this.#deps.clock.now());
    this.#appendInBackground({
      ...this.#record(request, 'revocation', 'revoked'),
      code: ending,
      message: text,
      ...(ending === 'Revoked' && revokedReason !== undefined ? { reason: revokedReason } : {}),
      ...(denial ? { votes: [auditVoteOf(denial)] } : {}),
    });
    const why = ending === 'Revoked' && revokedReason !== undefined ? `${text}: ${revokedReason}` : text;
    const isDirectExec = this.#deps.requestResource.kind === 'ExecAccessRequest' && !request.grant?.session;
    const sessions =
      isDirectExec && ending !== 'TargetPodGone'
        ? '; sessions that are open in its pod go on until they are closed or the pod is deleted'
        : '';
    const reason = ending === 'Expired' ? 'AccessExpired' : 'AccessRevoked';
    this.#event(request, 'Normal', reason, `access ended: ${why}${sessions}`);
  }

  /** An Event only: the webhook writes the audit lines of deletions and revocations by users. */
  endedWithoutAccess(request: RequestView, text: string): void {
    this.#event(request, 'Normal', 'RequestEnded', `the request ended before access opened: ${text}`, 'Request');
  }

  /** Does not wait for the journal; if the audit line cannot be written, logs an error. */
  denied(request: RequestView, violation: Violation): void {
    this.#deps.metrics.denied(request, violation.code, conditionOf(violation.code)[0]);
    this.#appendInBackground({
      ...this.#record(request, 'grant', 'denied'),
      ...askedFields(request.spec),
      code: violation.code,
      message: violation.message,
    });
    this.#event(request, 'Warning', violation.code, violation.message);
  }

  #appendInBackground(record: AuditRecord): void {
    this.#deps.journal.append(record).catch((error: unknown) => {
      this.#deps.log.error('audit line lost', {
        event: record.event,
        verdict: record.verdict,
        namespace: record.what.namespace,
        object: record.what.name,
        error: describe(error),
      });
    });
  }

  #record(
    request: RequestView,
    event: AuditRecord['event'],
    verdict: AuditRecord['verdict'],
    allowedGroups: readonly string[] = [],
  ): AuditRecord {
    const { requester } = request.spec;
    const groups = decidingGroupsFirst(requester?.groups ?? [], allowedGroups);
    return {
      event,
      verdict,
      who: { user: requester?.username ?? '', uid: requester?.uid ?? '', groups },
      what: {
        operation: event === 'grant' ? 'GRANT' : 'REVOKE',
        apiVersion: apiVersionOf(this.#deps.requestResource),
        kind: this.#deps.requestResource.kind,
        namespace: request.namespace,
        name: request.name,
        uid: request.uid,
      },
      template: request.spec.templateName,
      ...(request.grant
        ? {
            templateUid: request.grant.template.uid,
            templateGeneration: request.grant.template.generation,
            pod: request.grant.pod.name,
            expiresAt: formatTime(accessEndMs(request) ?? 0),
          }
        : {}),
    };
  }

  /** Votes are immutable, so a store that lags behind suffices. */
  #auditVote({ uid: requestUid }: RequestView, uid: string) {
    const vote = this.#deps.votes.byIndex(byRequest, requestUid).find((candidate) => candidate.uid === uid);
    return vote ? auditVoteOf(vote) : { uid };
  }

  /** Each action has its own budget, so that ends before access suppress no Event about access. */
  #event(
    request: Pick<RequestView, 'namespace' | 'name' | 'uid'>,
    type: 'Normal' | 'Warning',
    reason: string,
    note: string,
    action: 'Access' | 'Emergency' | 'Request' = 'Access',
  ): void {
    this.#deps.events.record({
      regarding: regarding(this.#deps.requestResource, request),
      type,
      reason,
      action,
      note,
    });
  }
}

export interface JournaledExtension {
  /** Counts from 1, as in votes about it. */
  readonly number: number;
  readonly asked: Pick<RequestedExtension, 'by' | 'reason'>;
  /** RFC 3339. */
  readonly expiresAt: string;
  readonly votes: readonly JudgedVote[];
}

interface GrantReporterDeps {
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: GrantMetrics;
  readonly requestResource: Resource;
  readonly votes: Store<VoteView>;
}

/** For a requester whom nothing verifies: the audit line must not name that user. */
export function withoutRequester(request: RequestView): RequestView {
  const { requester: _, ...spec } = request.spec;
  return { ...request, spec };
}

const auditVoteOf = ({ uid, spec: { voter, decision, max, reason, onBehalfOf } }: Pick<VoteView, 'uid' | 'spec'>) => ({
  uid,
  voter: voter?.username ?? '',
  decision,
  ...(max === undefined ? {} : { max }),
  ...(reason === undefined ? {} : { reason }),
  ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
});
