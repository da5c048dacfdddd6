import { type Ended, readEnded } from '../../api/access/ended.ts';
import { readGrant } from '../../api/access/grant.ts';
import { type Access, accesses, type RequestSpec, type TemplateSpec } from '../../api/access/kinds.ts';
import type { ExtensionStatus, RequestChild, RequestStatus, TemplateStatus } from '../../api/access/status.ts';
import { type Condition, type KubeObject, keyOf } from '../../api/object.ts';
import { type ObjectOf, readObject } from '../../api/schema/kind.ts';
import type { Read } from '../../api/schema/read.ts';
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
  /** The reconciler's last signature, perhaps by an earlier key or for an earlier author. */
  readonly authorSignature: TemplateStatus['authorSignature'];
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
    const { conditions = [], ready, authorSignature } = read.value.status ?? {};
    const createdAtMs = parseTime(creationTimestamp) ?? 0;
    return { ...metadata, generation, spec: read.value.spec, conditions, ready, createdAtMs, authorSignature };
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
  /** Not verified. Present even if the rest of the request is invalid. */
  readonly ended: Ended | undefined;
  /** Not verified: `accessEndMs` is the verified end. */
  readonly expiresAt: string | undefined;
  /** As the leader last wrote it. Not verified, so no grant depends on it. */
  readonly approval: RequestStatus['approval'];
  /** Read only to decide whether to write it. */
  readonly reasonLink: string | undefined;
  /** Not verified. */
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
  const request = readRequest(object);
  const grant = readGrant(object);
  const {
    expiresAt,
    approval,
    reasonLink,
    extensions = [],
    children = [],
    conditions = [],
    ready = false,
  } = request?.status ?? {};
  return {
    ...metadata,
    generation: object.metadata.generation ?? 0,
    createdAtMs,
    isNameGenerated: (object.metadata.generateName ?? '') !== '',
    deleting: object.metadata.deletionTimestamp !== undefined,
    finalizers: object.metadata.finalizers ?? [],
    revoked: own(object.spec, 'revoked') === true,
    spec: request?.spec ?? { templateName: '' },
    grant: grant.ok ? grant.value : undefined,
    ended: readEnded(object),
    expiresAt,
    approval,
    reasonLink,
    extensions,
    children,
    conditions,
    ready,
  };
}

function readRequest(object: KubeObject): ObjectOf<Access['request']> | undefined {
  const access = accesses.find(({ request }) => request.resource.kind === object.kind);
  const read: Read<ObjectOf<Access['request']>> | undefined = access && readObject(access.request, object);
  return read?.ok ? read.value : undefined;
}

/** Such as `Deployment/payments/web`; the value of the index `byTarget`. */
export function targetKey(target: { readonly kind: string; readonly name: string }, namespace: string): string {
  return `${target.kind}/${namespace}/${target.name}`;
}
