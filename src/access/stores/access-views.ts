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

/** The metadata of every view. */
export interface ViewMetadata extends Projected {
  readonly namespace: string;
  readonly name: string;
}

/** Reads the metadata of a view; undefined if it lacks uid, resourceVersion, or namespace. */
export function viewMetadata({ metadata }: KubeObject): ViewMetadata | undefined {
  const { uid, resourceVersion, namespace, name } = metadata;
  if (!uid || !resourceVersion || !namespace) return undefined;
  return { key: keyOf({ namespace, name }), uid, resourceVersion, namespace, name };
}

/** A template of any kind. */
export interface TemplateView<Spec = TemplateSpec> extends ViewMetadata {
  readonly generation: number;
  readonly spec: Spec;
  readonly conditions: readonly Condition[];
  /** `status.ready`. Undefined until the reconciler has observed the template. May be of an earlier generation: see the conditions. */
  readonly ready: TemplateStatus['ready'];
  /**
   * The reconciler's last signature of `spec.author`, which may be by an earlier key or for an earlier author. Undefined if
   * the reconciler never stored one.
   */
  readonly authorSignature: TemplateStatus['authorSignature'];
  /** Epoch ms; 0 if the time is missing or invalid. */
  readonly createdAtMs: number;
}

/** The projection of a template. A template that violates its schema, or lacks metadata, counts as absent. */
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

/** A request of any kind. */
export interface RequestView extends ViewMetadata {
  readonly generation: number;
  /** Epoch ms. */
  readonly createdAtMs: number;
  /** Whether the request has `metadata.generateName`. Its creator may have set a name, too. */
  readonly isNameGenerated: boolean;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  /** `spec.revoked`; read even if the rest of the spec is invalid. */
  readonly revoked: boolean;
  /** Only an empty `templateName` if the request violates its schema. */
  readonly spec: RequestSpec;
  /** Undefined if the request has no grant, or the grant violates its schema. */
  readonly grant: RequestStatus['grant'];
  /** How the request ended; present even if the rest of the request is invalid. Not verified. */
  readonly ended: Ended | undefined;
  /** `status.expiresAt`, not verified: `accessEndMs` is the verified end. */
  readonly expiresAt: string | undefined;
  /** `status.approval`: what the request waits for, as the leader last wrote it. It is not verified, so no grant depends on it. */
  readonly approval: RequestStatus['approval'];
  /** `status.reasonLink`. Read only to decide whether to write it. */
  readonly reasonLink: string | undefined;
  /** `status.extensions`, not verified. */
  readonly extensions: readonly ExtensionStatus[];
  /** The objects that the server created for the request, from the status. */
  readonly children: readonly RequestChild[];
  readonly conditions: readonly Condition[];
  readonly ready: boolean;
}

/**
 * The projection of a request. It shows the grant even if the rest of the request violates the schema, so that the grant ends on time.
 * Children and conditions are then empty, and `ready` is false. Undefined only if the metadata is incomplete.
 */
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

/** Identifies a workload across kinds, for example `Deployment/payments/web`; the value of the index `byTarget`. */
export function targetKey(target: { readonly kind: string; readonly name: string }, namespace: string): string {
  return `${target.kind}/${namespace}/${target.name}`;
}
