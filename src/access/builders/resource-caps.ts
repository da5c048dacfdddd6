import type { PodAccessTemplateSpec } from '../../api/access/pod-access.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import { compareQuantities, parseQuantity, type Quantity } from '../../kit/quantity.ts';
import type { Violation } from '../policy/policy.ts';
import type { PlanBudget } from './plan-budget.ts';

export type ResourceCaps = Pick<PodAccessTemplateSpec, 'maxCpu' | 'maxMemory' | 'maxStorage'>;

/** Resource names in the order of processing, and the field that caps each. */
const CAPPED = [
  ['cpu', 'maxCpu'],
  ['memory', 'maxMemory'],
  ['ephemeral-storage', 'maxStorage'],
] as const;

/** Work of comparing the request and limit of one container with a cap, in the unit of PlanBudget. */
const workPerHolder = 256;

/**
 * Lowers, in place, the requests and limits of every container (init containers too) and of the pod itself to the template's caps.
 * A cap applies to each container separately. A container without a limit gets the cap as its limit; without a request, its request
 * becomes 0. Returns what was lowered, one clause each, or `InvalidQuantity`. Throws `PlanTooLarge` once `budget` is spent.
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
    for (const { where, holder, mayLackLimit } of holdersOf(podSpec)) {
      budget.spend(workPerHolder);
      const violation = capOne(holder, where, resource, { value: caps[field], ...cap }, mayLackLimit, lowered);
      if (violation) return violation;
    }
  }
  return { lowered };
}

interface Holder {
  readonly where: string;
  readonly holder: JsonObject;
  /** Pod-level resources bound the sum of the containers; without a limit there, the limits of the containers apply. */
  readonly mayLackLimit: boolean;
}

function holdersOf(podSpec: JsonObject): Holder[] {
  const holders: Holder[] = [];
  for (const list of ['initContainers', 'containers']) {
    const containers = own(podSpec, list);
    for (const [index, holder] of (Array.isArray(containers) ? containers : []).entries()) {
      const name = own(holder, 'name');
      const where = `container ${typeof name === 'string' ? name : `${list}[${index}]`}`;
      if (isRecord(holder)) holders.push({ where, holder, mayLackLimit: false });
    }
  }
  if (own(podSpec, 'resources') !== undefined) {
    holders.push({ where: 'the pod', holder: podSpec, mayLackLimit: true });
  }
  return holders;
}

interface Cap {
  /** As written in the template. */
  readonly value: string | number;
  readonly quantity: Quantity;
}

function capOne(
  holder: JsonObject,
  where: string,
  resource: string,
  cap: Cap,
  mayLackLimit: boolean,
  lowered: string[],
): { readonly violation: Violation } | undefined {
  const resources = isRecord(holder['resources']) ? holder['resources'] : {};
  const current = { requests: resources['requests'], limits: resources['limits'] };
  const next: { requests: JsonObject; limits: JsonObject } = {
    requests: isRecord(current.requests) ? current.requests : {},
    limits: isRecord(current.limits) ? current.limits : {},
  };
  for (const list of ['requests', 'limits'] as const) {
    const value = own(next[list], resource);
    if (value === undefined) continue;
    const parsed = parseQuantity(value);
    if ('error' in parsed) return invalid(`${where}, resources.${list}.${resource}`, parsed.error);
    if (compareQuantities(parsed.quantity, cap.quantity) <= 0) continue;
    next[list][resource] = cap.value;
    lowered.push(`${where}: ${list}.${resource} lowered from ${String(value)} to ${cap.value}`);
  }
  if (own(next.limits, resource) === undefined && !mayLackLimit) {
    // Kubernetes would default an absent request to the limit.
    if (own(next.requests, resource) === undefined) next.requests[resource] = '0';
    next.limits[resource] = cap.value;
    lowered.push(`${where}: limits.${resource} set to ${cap.value}`);
  }
  for (const list of ['requests', 'limits'] as const) {
    if (Object.keys(next[list]).length > 0) resources[list] = next[list];
  }
  holder['resources'] = resources;
  return undefined;
}

const invalid = (field: string, why: string): { readonly violation: Violation } => ({
  violation: { code: 'InvalidQuantity', message: `${field}: ${why}`, field, status: 422 },
});
