import type { BindCondition } from '../../api/binding/condition.ts';
import { apiServiceExports, bindConditions, bindFieldManager, boundSchemas } from '../../api/binding/names.ts';
import { sameConditions } from '../../api/conditions.ts';
import type { Resource } from '../../api/object.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import { isRecord, type JsonObject } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';
import { ApiError, isConflict, isNotFound } from '../../kube/errors.ts';
import { type BindConditionUpdate, setConditionsAndReady } from '../conditions.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { CommonView } from '../stores/common-view.ts';
import type { CrdView } from '../stores/consumer-stores.ts';
import type { BoundSchemaView, ExportView } from '../stores/provider-stores.ts';

/** Writes status with the uid and resourceVersion that it was planned from. */
export class ExportWriter {
  readonly #client: Client;
  readonly #clock: Clock;

  constructor({ client }: Pick<ProviderSession, 'client'>, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Ignores a conflict or a deletion, whose event enqueues the export. */
  async writeExport(exported: ExportView, updates: readonly BindConditionUpdate[], signal: AbortSignal): Promise<void> {
    const conditions = setConditionsAndReady(exported.conditions, updates, this.#clock.now());
    if (sameConditions(exported.conditions, conditions)) return;
    await this.#write(apiServiceExports, exported, { conditions }, signal);
  }

  /** Returns why the provider rejects the status (422). Ignores a conflict or a deletion. */
  async writeSchema(schema: BoundSchemaView, crd: CrdView, signal: AbortSignal): Promise<string | undefined> {
    const status = boundSchemaStatusPatch(schema, crd, this.#clock.now());
    if (!status) return undefined;
    try {
      await this.#write(boundSchemas, schema, status, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 422) throw error;
      return `the provider rejects the status of BoundSchema ${schema.name}: ${error.message}`;
    }
    return undefined;
  }

  /** Ignores a conflict or a deletion, whose event enqueues the object. */
  async #write(
    resource: Resource,
    { namespace, name, uid, resourceVersion }: CommonView & { readonly namespace: string },
    status: object,
    signal: AbortSignal,
  ): Promise<void> {
    const patch = { metadata: { uid, resourceVersion }, status };
    const options = { subresource: 'status', fieldManager: bindFieldManager, signal };
    try {
      await this.#client.mergePatch(resource, { namespace, name }, patch, options);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
}

interface SchemaStatusPatch {
  conditions?: BindCondition[];
  acceptedNames?: unknown;
  storedVersions?: readonly string[];
}

function boundSchemaStatusPatch(schema: BoundSchemaView, crd: CrdView, nowMs: number): SchemaStatusPatch | undefined {
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

/** A type that the definition lacks is removed from the BoundSchema. */
const crdConditions: readonly string[] = [
  'Established',
  'KubernetesAPIApprovalPolicyConformant',
  'NamesAccepted',
  'NonStructuralSchema',
  'Terminating',
];

/** Those of the definition with their times, others of the BoundSchema, and `Ready`. */
function conditionsOf({ conditions }: BoundSchemaView, crd: CrdView, nowMs: number): BindCondition[] {
  const copied = crd.conditions.filter(({ type }) => type !== bindConditions.ready);
  const times = new Map(copied.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]));
  const before = conditions.filter(({ type }) => times.has(type) || !crdConditions.includes(type));
  return setConditionsAndReady(before, copied.map(conditionUpdateOf), nowMs).map((condition) => ({
    ...condition,
    lastTransitionTime: times.get(condition.type) || condition.lastTransitionTime,
  }));
}

function conditionUpdateOf({ type, status, reason, message }: CrdView['conditions'][number]): BindConditionUpdate {
  return { type, status, reason, message, ...(status === 'False' ? { severity: 'Error' as const } : {}) };
}

/** Fields that `now` lacks become null. */
function replacing(before: unknown, now: unknown): unknown {
  if (!isRecord(now)) return now;
  const removed: JsonObject = {};
  for (const field of isRecord(before) ? Object.keys(before) : []) {
    if (!Object.hasOwn(now, field)) removed[field] = null;
  }
  return { ...removed, ...now };
}
