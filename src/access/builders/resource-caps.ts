import type { PodAccessTemplateSpec } from '../../api/access/pod-access.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import { compareQuantities, parseQuantity, type Quantity } from '../../kit/quantity.ts';
import type { Violation } from '../policy/policy.ts';
import type { PlanBudget } from './plan-budget.ts';

/** An absent cap does not limit the resource. */
export type ResourceCaps = Pick<PodAccessTemplateSpec, 'maxCpu' | 'maxMemory' | 'maxStorage'>;

const CAPPED = [
  ['cpu', 'maxCpu'],
  ['memory', 'maxMemory'],
  ['ephemeral-storage', 'maxStorage'],
] as const;

/** Of applying one cap to one container or pod, in the unit of PlanBudget. */
const workPerResourceHolder = 256;

/**
 * Lowers requests and limits of containers and pod in place. A container without a limit gets the
 * cap, and then a missing request becomes 0. Code `InvalidTemplate`; throws `PlanTooLarge`.
 */
export function capResources(
  podSpec: JsonObject,
  caps: ResourceCaps,
  budget: PlanBudget,
): { readonly lowered: readonly string[] } | { readonly violation: Violation } {
  const lowered: string[] = [];
  for (const [resource, field] of CAPPED) {
    if (caps[field] === undefined) continue;
    const cap = parseQuantity(caps[field]);
    if ('error' in cap) return invalid(`spec.${field}`, cap.error);
    for (const holder of resourceHolders(podSpec)) {
      budget.spend(workPerResourceHolder);
      const result = lowerTo({ resource, value: caps[field], ...cap }, holder);
      if ('violation' in result) return result;
      lowered.push(...result.lowered);
    }
  }
  return { lowered };
}

/** A container or a pod spec. */
interface ResourceHolder {
  /** Such as `container web`, or `the pod`. */
  readonly label: string;
  readonly object: JsonObject;
  /** True for the pod spec: every container gets a limit. */
  readonly mayLackLimit: boolean;
}

function resourceHolders(podSpec: JsonObject): ResourceHolder[] {
  const holders: ResourceHolder[] = [];
  for (const list of ['initContainers', 'containers']) {
    const containers = own(podSpec, list);
    for (const [index, container] of (Array.isArray(containers) ? containers : []).entries()) {
      const name = own(container, 'name');
      const label = `container ${typeof name === 'string' ? name : `${list}[${index}]`}`;
      if (isRecord(container)) holders.push({ label, object: container, mayLackLimit: false });
    }
  }
  if (own(podSpec, 'resources') !== undefined) {
    holders.push({ label: 'the pod', object: podSpec, mayLackLimit: true });
  }
  return holders;
}

interface Cap {
  readonly resource: string;
  /** As written in the template. */
  readonly value: string | number;
  readonly quantity: Quantity;
}

function lowerTo(
  { resource, value: capValue, quantity }: Cap,
  { label, object, mayLackLimit }: ResourceHolder,
): { readonly lowered: readonly string[] } | { readonly violation: Violation } {
  const lowered: string[] = [];
  const resources = isRecord(object['resources']) ? object['resources'] : {};
  const current = { requests: resources['requests'], limits: resources['limits'] };
  const next: { requests: JsonObject; limits: JsonObject } = {
    requests: isRecord(current.requests) ? current.requests : {},
    limits: isRecord(current.limits) ? current.limits : {},
  };
  for (const list of ['requests', 'limits'] as const) {
    const value = own(next[list], resource);
    if (value === undefined) continue;
    const parsed = parseQuantity(value);
    if ('error' in parsed) return invalid(`${label}, resources.${list}.${resource}`, parsed.error);
    if (compareQuantities(parsed.quantity, quantity) <= 0) continue;
    next[list][resource] = capValue;
    lowered.push(`${label}: ${list}.${resource} lowered from ${String(value)} to ${capValue}`);
  }
  if (own(next.limits, resource) === undefined && !mayLackLimit) {
    // Kubernetes would default an absent request to the limit.
    if (own(next.requests, resource) === undefined) next.requests[resource] = '0';
    next.limits[resource] = capValue;
    lowered.push(`${label}: limits.${resource} set to ${capValue}`);
  }
  for (const list of ['requests', 'limits'] as const) {
    if (Object.keys(next[list]).length > 0) resources[list] = next[list];
  }
  object['resources'] = resources;
  return { lowered };
}

const invalid = (field: string, why: string): { readonly violation: Violation } => ({
  violation: { code: 'InvalidTemplate', message: `${field}: ${why}`, field, status: 422 },
});
