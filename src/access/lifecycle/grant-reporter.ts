import { apiVersionOf, type Resource } from '../../api/object.ts';
import type { Journal } from '../../audit/journal.ts';
import { type AuditRecord, decidingGroupsFirst } from '../../audit/record.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Log } from '../../observe/log.ts';
import type { Violation } from '../policy/policy.ts';
import type { RequestView } from '../stores/access-views.ts';
import { type Ending, endingTexts } from './ending.ts';
import type { GrantMetrics } from './grant-metrics.ts';
import { conditionFor } from './request-status.ts';

/** Reports each step of a grant to the audit journal, Events, and metrics. */
export class GrantReporter {
  readonly #deps: GrantReporterDeps;

  constructor(deps: GrantReporterDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves once the record is in the journal; callers create nothing before that. Rejects with `AuditUnavailable`. `allowedGroups` are
   * those of the template.
   */
  async granted(request: RequestView, allowedGroups: readonly string[]): Promise<void> {
    await this.#deps.journal.append(this.#record(request, 'grant', 'granted', allowedGroups));
    this.#deps.metrics.granted(request);
    this.#event(
      request,
      'Normal',
      'AccessGranted',
      `${request.spec.requester?.username} may use pod ${request.grant?.pod.name} until ${request.grant?.expiresAt}`,
    );
  }

  /** Updates metrics only: `granted` already wrote the audit line. */
  ready(request: RequestView): void {
    this.#deps.metrics.ready(request, this.#deps.clock.now());
  }

  /** Reports the end of a grant. Call it after the access is closed, because revocation never waits for the journal. */
  revoked(request: RequestView, ending: Ending): void {
    this.#deps.metrics.revoked(request, ending, this.#deps.clock.now());
    this.#appendInBackground({
      ...this.#record(request, 'revocation', 'revoked'),
      code: ending,
      message: endingTexts[ending],
    });
    this.#event(
      request,
      'Normal',
      ending === 'Expired' ? 'AccessExpired' : 'AccessRevoked',
      `access revoked: ${endingTexts[ending]}`,
    );
  }

  /** Reports a denial. Does not wait for the journal; if its line cannot be written, logs that. */
  denied(request: RequestView, violation: Violation): void {
    this.#deps.metrics.denied(request, violation.code, conditionFor(violation.code));
    this.#appendInBackground({
      ...this.#record(request, 'grant', 'denied'),
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
      ...(request.grant ? { pod: request.grant.pod.name, expiresAt: request.grant.expiresAt } : {}),
    };
  }

  #event(request: RequestView, type: 'Normal' | 'Warning', reason: string, note: string): void {
    this.#deps.events.record({
      regarding: regarding(this.#deps.requestResource, request),
      type,
      reason,
      action: 'Access',
      note,
    });
  }
}

interface GrantReporterDeps {
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: GrantMetrics;
  readonly requestResource: Resource;
}
