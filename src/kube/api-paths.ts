import type { Resource } from '../api/object.ts';
import { CodedError, quote } from '../kit/errors.ts';

/** Without `name`: the collection. */
export interface PathTarget {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** `/api/v1` or `/apis/<group>/<version>`. */
export function groupPath({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group ? `/apis/${segment(group)}/${segment(version)}` : `/api/${segment(version)}`;
}

/**
 * Throws CodedError `InvalidPathSegment`, or `NamespaceRequired` for a `name` without namespace.
 */
export function resourcePath(resource: Resource, { namespace, name, subresource }: PathTarget = {}): string {
  if (resource.namespaced && name !== undefined && !namespace) {
    throw new CodedError(
      'NamespaceRequired',
      `${resource.plural} ${quote(name)}: no namespace was given; the kind is namespaced, so name one`,
    );
  }
  let path = groupPath(resource);
  if (resource.namespaced && namespace) path += `/namespaces/${segment(namespace)}`;
  path += `/${segment(resource.plural)}`;
  if (name !== undefined) path += `/${segment(name)}`;
  if (subresource !== undefined) path += `/${segment(subresource)}`;
  return path;
}

/** Names come from untrusted objects, and an API server decodes a path before it reads it. */
function segment(text: string): string {
  if (text === '' || text === '.' || text === '..' || /[/%]/.test(text)) {
    throw new CodedError('InvalidPathSegment', `${quote(text)} cannot be part of a request path; correct the name`);
  }
  return encodeURIComponent(text);
}
