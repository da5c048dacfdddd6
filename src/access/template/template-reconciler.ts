import { type TemplateCondition, templateConditions } from '../../api/access/names.ts';
import { mergeConditions, sameConditions } from '../../api/conditions.ts';
import type { Resource } from '../../api/object.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import { type AccessConditionUpdate, allTrue, failure, type Summary, success, summarized } from '../conditions.ts';
import { readAccessCommand } from '../policy/access-client.ts';
import { verifyDurations } from '../policy/duration-choice.ts';
import type { Signer } from '../signing/signer.ts';
import { type TemplateView, targetKey } from '../stores/access-views.ts';
import type { WorkloadView } from '../stores/cluster-views.ts';
import type { TemplateAuthors } from './template-authors.ts';

/** Interval between checks of an author's permissions, milliseconds: less than the age of answers that a decision accepts. */
const recheckMs = 40_000;

/**
 * Writes the status of a template, which is ready if its durations and its access command are valid, its target exists, and its author holds
 * the permissions that it hands out.
 */
export class TemplateReconciler implements Reconciler {
  readonly #deps: TemplateReconcilerDeps;

  constructor(deps: TemplateReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const template = this.#deps.templates.get(key);
    if (!template) return done;
    const updates = [
      this.#durations(template),
      this.#target(template),
      this.#command(template),
      await this.#author(template, signal),
    ];
    const nowMs = this.#deps.clock.now();
    const merged = mergeConditions(template.conditions, updates, nowMs, { generation: template.generation });
    const ready = allTrue(merged, Object.values(templateConditions));
    const conditions = summarized(template.generation, merged, summaryOf(updates), nowMs);
    const authorSignature = this.#authorSignature(template, updates);
    const isSame = ready === template.ready && authorSignature === template.authorSignature;
    if (!isSame || !sameConditions(template.conditions, conditions)) {
      const status = { conditions, ready, ...(authorSignature === undefined ? {} : { authorSignature }) };
      const patch = { metadata: { resourceVersion: template.resourceVersion }, status };
      await this.#deps.client.mergePatch(this.#deps.resource, template, patch, { subresource: 'status', signal });
    }
    // The author's permissions can change without an event. This check also caches the answers for grants.
    return template.spec.author ? after(recheckMs) : done;
  }

  async #author(template: TemplateView, signal: AbortSignal): Promise<AccessConditionUpdate<TemplateCondition>> {
    const { authorHoldsRights } = templateConditions;
    const { username } = template.spec.author ?? {};
    const violation = await this.#deps.authors.violation(template, recheckMs / 2, signal);
    if (violation) return failure(authorHoldsRights, violation.code, violation.message);
    const message = username === undefined ? 'no author; this installation trusts existing templates' : quote(username);
    return success(authorHoldsRights, message);
  }

  /** Signature of a verified author under the current key, so that templates stay valid after a key rotation. */
  #authorSignature(
    template: TemplateView,
    updates: readonly AccessConditionUpdate<TemplateCondition>[],
  ): string | undefined {
    const isUnverified = updates.some(({ reason }) => reason === 'AuthorUnknown');
    const attestation = isUnverified ? undefined : this.#deps.authors.attestationOf(template);
    const signature = attestation && this.#deps.signer.signAuthor(attestation);
    const isRedundant = signature === undefined || signature === template.spec.author?.signature;
    return isRedundant ? template.authorSignature : signature;
  }

  #durations(template: TemplateView) {
    const { accessConfig } = template.spec;
    const violation = verifyDurations(accessConfig);
    return violation
      ? failure(templateConditions.templateDurationsValid, 'NotAcceptable', violation.message)
      : success(
          templateConditions.templateDurationsValid,
          `${accessConfig.defaultDuration} by default, at most ${accessConfig.maxDuration}`,
        );
  }

  #command({ spec }: TemplateView) {
    const { accessCommandValid } = templateConditions;
    const parsed = readAccessCommand(spec.accessConfig.accessCommand);
    return 'violation' in parsed
      ? failure(accessCommandValid, parsed.violation.code, parsed.violation.message)
      : success(accessCommandValid, 'the access command connects to the granted pod');
  }

  #target(template: TemplateView) {
    const ref = template.spec.controllerTargetRef;
    if (!ref) return success(templateConditions.targetRefExists, 'the template defines the pod in spec.podSpec');
    const name = `${ref.kind} ${template.namespace}/${ref.name}`;
    return this.#deps.workload(targetKey(ref, template.namespace))
      ? success(templateConditions.targetRefExists, name)
      : failure(
          templateConditions.targetRefExists,
          'NotFound',
          `${name} does not exist; the template becomes ready when it appears`,
        );
  }
}

interface TemplateReconcilerDeps {
  readonly resource: Resource;
  readonly templates: Store<TemplateView>;
  /** The workload under a `targetKey`. */
  readonly workload: (key: string) => WorkloadView | undefined;
  readonly authors: TemplateAuthors;
  readonly signer: Signer;
  readonly client: Client;
  readonly clock: Clock;
}

/** The conditions that stay False until a user corrects the template. A missing target may still appear. */
const permanent: ReadonlySet<string> = new Set([
  templateConditions.templateDurationsValid,
  templateConditions.accessCommandValid,
]);

function summaryOf(updates: readonly AccessConditionUpdate<TemplateCondition>[]): Summary {
  const failing = updates.find(({ status }) => status === 'False');
  if (!failing) return { state: 'ready', message: 'requests can name this template' };
  const { type, reason, message } = failing;
  return { state: permanent.has(type) ? 'stalled' : 'reconciling', reason, message };
}
