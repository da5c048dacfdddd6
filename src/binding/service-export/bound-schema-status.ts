import type { BindCondition } from '../../api/binding/condition.ts';
import { bindConditions } from '../../api/binding/names.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { isRecord, type JsonObject } from '../../kit/json-value.ts';
import { type BindFinding, sameConditions, setConditionsAndReady } from '../conditions.ts';
import type { BoundSchemaView, CrdView } from '../stores/views.ts';

export interface SchemaStatusPatch {
  conditions?: BindCondition[];
  acceptedNames?: unknown;
  storedVersions?: readonly string[];
}

/** What a provider is told of the CustomResourceDefinition that its BoundSchema became, as a merge patch; undefined when it is told already. */
export function boundSchemaStatusPatch(
  schema: BoundSchemaView,
  crd: CrdView,
  nowMs: number,
): SchemaStatusPatch | undefined {
  const patch: SchemaStatusPatch = {};
  const conditions = conditionsOf(schema, crd, nowMs);
  if (!sameConditions(schema.conditions, conditions)) patch.conditions = conditions;
  if (crd.acceptedNames !== undefined && canonicalJson(crd.acceptedNames) !== canonicalJson(schema.acceptedNames)) {
    patch.acceptedNames = replacing(schema.acceptedNames, crd.acceptedNames);
  }
  if (canonicalJson(crd.storedVersions) !== canonicalJson(schema.storedVersions)) {
    patch.storedVersions = crd.storedVersions;
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** What the API server says of a definition; one that it says no more must go. */
const crdConditions: readonly string[] = [
  'Established',
  'KubernetesAPIApprovalPolicyConformant',
  'NamesAccepted',
  'NonStructuralSchema',
  'Terminating',
];

/** Those of the definition with the times they have there, and what they come to. */
function conditionsOf({ conditions }: BoundSchemaView, crd: CrdView, nowMs: number): BindCondition[] {
  const copied = crd.conditions.filter(({ type }) => type !== bindConditions.ready);
  const times = new Map(copied.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]));
  const before = conditions.filter(({ type }) => times.has(type) || !crdConditions.includes(type));
  return setConditionsAndReady(before, copied.map(findingOf), nowMs).map((condition) => ({
    ...condition,
    lastTransitionTime: times.get(condition.type) || condition.lastTransitionTime,
  }));
}

function findingOf({ type, status, reason, message }: CrdView['conditions'][number]): BindFinding {
  return { type, status, reason, message, ...(status === 'False' ? { severity: 'Error' as const } : {}) };
}

/** A merge patch that leaves nothing of `before` in the object. */
function replacing(before: unknown, now: unknown): unknown {
  if (!isRecord(now)) return now;
  const gone: JsonObject = {};
  for (const field of isRecord(before) ? Object.keys(before) : []) if (!Object.hasOwn(now, field)) gone[field] = null;
  return { ...gone, ...now };
}
