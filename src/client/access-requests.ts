import { type Access, accesses } from '../api/access/kinds.ts';
import { apiVersionOf, type KubeObject, type ObjectName, type Resource } from '../api/object.ts';
import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { usageProblem } from './args.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { exits } from './command-spec.ts';
import { findServed, Problem } from './problem.ts';

/** The short names of the kinds of access, as users type them: `pod/NAME`. */
export const typeNames = ['pod', 'exec'] as const;
export type TypeName = (typeof typeNames)[number];

const byType: Readonly<Record<TypeName, Access>> = { pod: accesses[0], exec: accesses[1] };

export const accessOf = (type: TypeName): Access => byType[type];
export const requestResource = (type: TypeName): Resource => byType[type].request.resource;
export const templateResource = (type: TypeName): Resource => byType[type].template.resource;

/** The short name of the kind of a request or template. */
export const typeOf = ({ kind }: KubeObject): TypeName => (kind.startsWith('Pod') ? 'pod' : 'exec');

/** A request or template, and the short name of its kind. */
export interface TypedObject {
  readonly type: TypeName;
  readonly object: KubeObject;
}

/** The name and namespace of an object, as arguments of a call. */
export const nameIn = ({ metadata: { name, namespace } }: KubeObject): ObjectName => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
});

/**
 * Finds the request that the user named in a form that `readName` accepts. Rejects with a Problem for any other text, if no such request
 * exists, or if the user named no type and a request of each type has this name. Rejects with the error of a call that fails. `list` is the
 * command that lists the requests among which the user finds the right name.
 */
export const findRequest = (connection: ClusterConnection, text: string, list = 'list'): Promise<TypedObject> =>
  findExisting(connection, text, requestResource, 'request', ({ namespace, program, quotedFlags }, name) => {
    const where = ['-n', namespace, ...quotedFlags].join(' ');
    const events = `kubectl get events ${where} --field-selector involvedObject.name=${name}`;
    return `if it has ended, its Events say why: ${events}; to list ${list === 'pending' ? 'requests that wait for you' : 'requests'}: ${program} ${list} ${where}`;
  });

/** Finds a template. Arguments and errors are those of `findRequest`. */
export const findTemplate = (connection: ClusterConnection, text: string): Promise<TypedObject> =>
  findExisting(
    connection,
    text,
    templateResource,
    'template',
    ({ namespace, program, quotedFlags }) =>
      `to list templates: ${program} templates ${['-n', namespace, ...quotedFlags].join(' ')}`,
  );

/**
 * The request that the user named or, if it does not exist, for each type that the text permits an object with only its kind and its name,
 * because the emergency access of a deleted request may still need a review. Rejects as `findRequest` does, but not if no request exists.
 */
export async function findRequestOrNames(connection: ClusterConnection, text: string): Promise<readonly TypedObject[]> {
  const found = await find(connection, text, requestResource, 'request');
  if (found) return [found];
  const { types, name } = readName(text, requestResource);
  return types.map((type) => {
    const resource = requestResource(type);
    const metadata = { name, namespace: connection.namespace };
    return { type, object: { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata } };
  });
}

async function findExisting(
  connection: ClusterConnection,
  text: string,
  resourceOf: (type: TypeName) => Resource,
  what: string,
  remedy: (connection: ClusterConnection, name: string) => string,
): Promise<TypedObject> {
  const found = await find(connection, text, resourceOf, what);
  if (found) return found;
  const { name } = readName(text, resourceOf);
  throw new Problem(
    exits.failed,
    `no ${what} ${text} in namespace ${connection.namespace}; ${remedy(connection, name)}`,
  );
}

async function find(
  { cluster, namespace }: ClusterConnection,
  text: string,
  resourceOf: (type: TypeName) => Resource,
  what: string,
): Promise<TypedObject | undefined> {
  const { types, name } = readName(text, resourceOf);
  const objects = await Promise.all(
    types.map((type) => findServed(cluster.client, resourceOf(type), { namespace, name })),
  );
  const found = types.flatMap((type, index): TypedObject[] => {
    const object = objects[index];
    return object ? [{ type, object }] : [];
  });
  const [first, second] = found;
  if (second)
    throw usageProblem(`namespace ${namespace} has a ${what} ${name} of each type; write pod/${name} or exec/${name}`);
  return first;
}

/**
 * Parses what the user typed into a name and its possible types; without a slash, these are both types. Before the slash, it accepts `pod`
 * or `exec`, the kind in any case, its plural, and the type that `-o name` prints. @throws Problem for any other.
 */
function readName(
  text: string,
  resourceOf: (type: TypeName) => Resource,
): { readonly types: readonly TypeName[]; readonly name: string } {
  const slash = text.indexOf('/');
  if (slash < 0) return { types: typeNames, name: text };
  const [kind, name] = [text.slice(0, slash).toLowerCase().split('.')[0] ?? '', text.slice(slash + 1)];
  const type = typeNames.find((one) => {
    const resource = resourceOf(one);
    return [one, resource.kind.toLowerCase(), resource.plural].includes(kind);
  });
  if (!type || name === '')
    throw usageProblem(`${quote(text)} names no request or template; write NAME, pod/NAME, or exec/NAME`);
  return { types: [type], name };
}

/** A request and the flags that find it again, as words of a command line: `pod/NAME -n NAMESPACE …`. */
export const requestWithFlags = (connection: ClusterConnection, type: TypeName, name: string): string =>
  [`${type}/${name}`, '-n', connection.namespace, ...connection.quotedFlags].join(' ');

/** `podaccessrequest.crds.wizardofoz.co/NAME`, as kubectl prints and accepts it. */
export const fullName = ({ apiVersion, kind, metadata }: KubeObject): string =>
  `${kind.toLowerCase()}.${apiVersion.split('/')[0]}/${metadata.name}`;

/** The name of the requester; empty if the webhooks were not registered when the request was created. */
export function requesterOf(request: KubeObject): string {
  const name = own(own(request.spec, 'requester'), 'username');
  return typeof name === 'string' ? name : '';
}
