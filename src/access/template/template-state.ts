import { isSummary } from '../kstatus.ts';
import type { TemplateState } from '../policy/request-policy.ts';
import type { TemplateView } from '../stores/views.ts';

type Found = Extract<TemplateState, { found: true }>;
export type TemplateSpec = Found['spec'];

/** What the rule books need to know of a template that was found. */
export function templateState(template: TemplateView<TemplateSpec>): Found {
  const failing = template.conditions.find((condition) => condition.status === 'False' && !isSummary(condition));
  const observed = template.conditions.map((condition) => condition.observedGeneration ?? 0);
  return {
    found: true,
    uid: template.uid,
    generation: template.generation,
    spec: template.spec,
    ready: template.ready,
    // Every condition speaks of its own generation; the template is observed as far as the oldest.
    observedGeneration: observed.length > 0 ? Math.min(...observed) : undefined,
    ...(failing ? { failing: { type: failing.type, reason: failing.reason, message: failing.message } } : {}),
  };
}
