import { type TemplateCondition, templateConditions } from '../../api/access/names.ts';
import type { Resource } from '../../api/object.ts';
import { done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import { allTrue, type Finding, failure, mergeConditions, sameConditions, success } from '../conditions.ts';
import { type Standing, summarized } from '../kstatus.ts';
import { verifyDurations } from '../policy/duration-choice.ts';
import type { TemplateView, WorkloadView } from '../stores/views.ts';
import { type TargetedSpec, targetKey } from './target.ts';

/** Tells in a template's status whether it can be used: its durations hold together, and what it points to exists. */
export class TemplateReconciler implements Reconciler {
  readonly #deps: TemplateReconcilerDeps;

  constructor(deps: TemplateReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const template = this.#deps.templates.get(key);
    if (!template) return done;
    const findings = [this.#durations(template), this.#target(template)];
    const nowMs = this.#deps.clock.now();
    const told = mergeConditions(template, findings, nowMs);
    const ready = allTrue(told, Object.values(templateConditions));
    const conditions = summarized(template.generation, told, standing(findings), nowMs);
    if (ready === template.ready && sameConditions(template.conditions, conditions)) return done;
    const patch = { metadata: { resourceVersion: template.resourceVersion }, status: { conditions, ready } };
    await this.#deps.client.mergePatch(this.#deps.resource, template, patch, { subresource: 'status', signal });
    return done;
  }

  #durations(template: TemplateView<TargetedSpec>) {
    const { accessConfig } = template.spec;
    const violation = verifyDurations(accessConfig);
    return violation
      ? failure(templateConditions.templateDurationsValid, 'NotAcceptable', violation.message)
      : success(
          templateConditions.templateDurationsValid,
          `${accessConfig.defaultDuration} unless asked otherwise, at most ${accessConfig.maxDuration}`,
        );
  }

  #target(template: TemplateView<TargetedSpec>) {
    const ref = template.spec.controllerTargetRef;
    if (!ref) return success(templateConditions.targetRefExists, 'the pod is written out in spec.podSpec');
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

export interface TemplateReconcilerDeps {
  readonly resource: Resource;
  readonly templates: Store<TemplateView<TargetedSpec>>;
  /** The workload under a `targetKey`. */
  readonly workload: (key: string) => WorkloadView | undefined;
  readonly client: Client;
  readonly clock: Clock;
}

/** Bad durations stay until somebody corrects them; a target may come by itself. */
function standing(findings: readonly Finding<TemplateCondition>[]): Standing {
  const failing = findings.find(({ status }) => status === 'False');
  if (!failing) return { is: 'ready', message: 'requests can be made' };
  const { type, reason, message } = failing;
  return { is: type === templateConditions.templateDurationsValid ? 'stalled' : 'reconciling', reason, message };
}
