import { type Ended, readEnded } from '../../api/access/ended.ts';
import { readGrant } from '../../api/access/grant.ts';
import { type Access, accesses, type RequestSpec, type TemplateSpec } from '../../api/access/kinds.ts';
import type { ExtensionStatus, RequestChild, RequestStatus, TemplateStatus } from '../../api/access/status.ts';
import { type Condition, type KubeObject, keyOf } from '../../api/object.ts';
import { type ObjectOf, readObject } from '../../api/schema/kind.ts';
import { type Read, readBySchema } from '../../api/schema/read.ts';
import type { StructuralSchema } from '../../api/schema/structural-schema.ts';
import { parseTime } from '../../kit/clock.ts';
import { own } from '../../kit/json-value.ts';
import type { Projected } from '../../kube/store.ts';

export interface ViewMetadata extends Projected {
  readonly namespace: string;
  readonly name: string;
}

/** Undefined without uid, resourceVersion, or namespace. */
export function viewMetadata({ metadata }: KubeObject): ViewMetadata | undefined {
  const { uid, resourceVersion, namespace, name } = metadata;
  if (!uid || !resourceVersion || !namespace) return undefined;
  return { key: keyOf({ namespace, name }), uid, resourceVersion, namespace, name };
}

export interface TemplateView<Spec = TemplateSpec> extends ViewMetadata {
  readonly generation: number;
  readonly spec: Spec;
  readonly conditions: readonly Condition[];
  /** Undefined until the reconciler has observed the template. May be of an earlier generation. */
  readonly ready: TemplateStatus['ready'];
  /** Epoch ms; 0 if the time is missing or invalid. */
  readonly createdAtMs: number;
}

/** A template that violates its schema, or lacks metadata, counts as absent. */
export const viewTemplate =
  ({ template }: Access) =>
  (object: KubeObject): TemplateView | undefined => {
    const metadata = viewMetadata(object);
    const read: Read<ObjectOf<Access['template']>> = readObject(template, object);
    if (!metadata || !read.ok) return undefined;
    const { generation = 0, creationTimestamp = '' } = object.metadata;
    const { conditions = [], ready } = read.value.status ?? {};
    const createdAtMs = parseTime(creationTimestamp) ?? 0;
    return { ...metadata, generation, spec: read.value.spec, conditions, ready, createdAtMs };
  };

export interface RequestView extends ViewMetadata {
  readonly generation: number;
  /** Epoch ms. */
  readonly createdAtMs: number;
  /** `metadata.generateName` is set; `name` may be set as well. */
  readonly isNameGenerated: boolean;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  /** Read even if the rest of the spec is invalid. */
  readonly revoked: boolean;
  /** Only an empty `templateName` if the request violates its schema. */
  readonly spec: RequestSpec;
  /** Undefined also if the grant violates its schema. */
  readonly grant: RequestStatus['grant'];
  /** Present even if the rest of the request is invalid. */
  readonly ended: Ended | undefined;
  /** Read only to decide whether to write it, and for a metric. */
  readonly state: RequestStatus['state'];
  /** For information: `accessEndMs` counts. */
  readonly expiresAt: string | undefined;
  /** As the leader last wrote it. No grant depends on it. */
  readonly approval: RequestStatus['approval'];
  /** Read only to decide whether to write it. */
  readonly reasonLink: string | undefined;
  readonly extensions: readonly ExtensionStatus[];
  /** From the status. */
  readonly children: readonly RequestChild[];
  readonly conditions: readonly Condition[];
  readonly ready: boolean;
}

/** Shows the grant even if the rest violates the schema, so that it ends on time. */
export function viewRequest(object: KubeObject): RequestView | undefined {
  const metadata = viewMetadata(object);
  const createdAtMs = parseTime(object.metadata.creationTimestamp ?? '');
  if (!metadata || createdAtMs === undefined) return undefined;
  const { spec, status } = readFields(object);
  const grant = readGrant(object);
  const { state, expiresAt, approval, reasonLink } = status;
  const { extensions = [], children = [], conditions = [], ready = false } = status;
  return {
    ...metadata,
    generation: object.metadata.generation ?? 0,
    createdAtMs,
    isNameGenerated: (object.metadata.generateName ?? '') !== '',
    deleting: object.metadata.deletionTimestamp !== undefined,
    finalizers: object.metadata.finalizers ?? [],
    revoked: own(object.spec, 'revoked') === true,
    spec: spec ?? { templateName: '' },
    grant: grant.ok ? grant.value : undefined,
    ended: readEnded(object),
    state,
    expiresAt,
    approval,
    reasonLink,
    extensions,
    children,
    conditions,
    ready,
  };
}

type ReadFields = { readonly spec: RequestSpec | undefined; readonly status: Partial<RequestStatus> };

/**
 * The spec as a whole, and each field of the status alone, so that a state that another version
 * wrote hides only its own field.
 */
function readFields(object: KubeObject): ReadFields {
  const access = accesses.find(({ request }) => request.resource.kind === object.kind);
  if (!access) return { spec: undefined, status: {} };
  const { structural } = access.request;
  const spec = readBySchema<RequestSpec>(structural.spec, object.spec, 'spec');
  const status = Object.entries(structural.status.properties ?? {}).flatMap(([name, schema]) => {
    const read = readBySchema(schema, own(object.status, name), name);
    return read.ok ? [[name, read.value]] : [];
  });
  const known = spec.ok ? spec.value : undefined;
  const extensions = readExtensions(
    structural.status.properties?.['extensions'],
    own(object.status, 'extensions'),
    known,
  );
  return { spec: known, status: { ...Object.fromEntries(status), extensions } };
}

/** An entry that does not fit its schema keeps its place, and grants nothing. */
function readExtensions(list: StructuralSchema | undefined, value: unknown, spec: RequestSpec | undefined) {
  const { items, maxItems } = list ?? {};
  if (!items || !Array.isArray(value)) return [];
  return value.slice(0, maxItems).map((entry, index): ExtensionStatus => {
    const read = readBySchema<ExtensionStatus>(items, entry, 'extensions');
    const by = spec?.extensions?.[index]?.by ?? '';
    return read.ok ? read.value : { by, state: 'Denied', message: 'another version of drawbridge decided it' };
  });
}

/** Such as `Deployment/payments/web`; the value of the index `byTarget`. */
export function targetKey(target: { readonly kind: string; readonly name: string }, namespace: string): string {
  return `${target.kind}/${namespace}/${target.name}`;
}

/** Epoch ms: by the last granted extension, the grant, or an earlier `status.ended`. */
export function accessEndMs({ grant, extensions, ended }: RequestView): number | undefined {
  if (!grant) return undefined;
  const endMs = extensions.reduce(
    (latestMs, { expiresAt }) => parseTime(expiresAt ?? '') ?? latestMs,
    parseTime(grant.expiresAt),
  );
  const endedMs = parseTime(ended?.at ?? '');
  return endMs === undefined || endedMs === undefined ? endMs : Math.min(endMs, endedMs);
}
