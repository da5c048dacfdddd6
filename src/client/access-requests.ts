import { type Access, accesses } from '../api/access/kinds.ts';
import { apiVersionOf, type KubeObject, type ObjectName, type Resource } from '../api/object.ts';
import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { usageProblem } from './args.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { exits } from './command-spec.ts';
import { findServed, Problem, readEach } from './problem.ts';

/** As users type the kinds of access: `pod/NAME`. */
export const typeNames = ['pod', 'exec'] as const;
export type TypeName = (typeof typeNames)[number];

const byType: Readonly<Record<TypeName, Access>> = { pod: accesses[0], exec: accesses[1] };

export const accessOf = (type: TypeName): Access => byType[type];
export const requestResource = (type: TypeName): Resource => byType[type].request.resource;
export const templateResource = (type: TypeName): Resource => byType[type].template.resource;

export const typeOf = ({ kind }: KubeObject): TypeName => (kind.startsWith('Pod') ? 'pod' : 'exec');

export interface TypedObject {
  readonly type: TypeName;
  readonly object: KubeObject;
}

/** As arguments of a call. */
export const nameIn = ({ metadata: { name, namespace } }: KubeObject): ObjectName => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
});

/**
 * Finds the request that the user named. Rejects with a Problem if there is none, or one of each
 * type. `list`: the command that finds the right name.
 */
export const findRequest = (connection: ClusterConnection, text: string, list = 'list'): Promise<TypedObject> =>
  findExisting(connection, text, requestResource, 'request', ({ program, where }, name) => {
    const events = `kubectl get events ${where} --field-selector involvedObject.name=${name}`;
    return `if it has ended, its Events say why: ${events}; to list ${list === 'pending' ? 'requests that wait for you' : 'requests'}: ${program} ${list} ${where}`;
  });

/** As `findRequest`. */
export const findTemplate = (connection: ClusterConnection, text: string): Promise<TypedObject> =>
  findExisting(
    connection,
    text,
    templateResource,
    'template',
    ({ program, where }) => `to list templates: ${program} templates ${where}`,
  );

/** Of a deleted request, kind and name for each possible type: it may still need a review. */
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
  { cluster, namespace, note }: ClusterConnection,
  text: string,
  resourceOf: (type: TypeName) => Resource,
  what: string,
): Promise<TypedObject | undefined> {
  const { types, name } = readName(text, resourceOf);
  const read = (resource: Resource) => findServed(cluster.client, resource, { namespace, name });
  const objects = await readEach(types.map(resourceOf), read, note);
  const found = types.flatMap((type, index): TypedObject[] => {
    const object = objects[index];
    return object ? [{ type, object }] : [];
  });
  const [first, second] = found;
  if (second)
    throw usageProblem(`namespace ${namespace} has a ${what} ${name} of each type; write pod/${name} or exec/${name}`);
  return first;
}

/** NAME or, before a slash, also a type, kind, plural, or what `-o name` prints. @throws Problem */
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

/** Words of a command line that find the request again: `pod/NAME -n NAMESPACE …`. */
export const requestWithFlags = ({ where }: Pick<ClusterConnection, 'where'>, type: TypeName, name: string): string =>
  `${type}/${name} ${where}`;

/** `podaccessrequest.crds.wizardofoz.co/NAME`, as kubectl prints and accepts it. */
export const fullName = ({ apiVersion, kind, metadata }: KubeObject): string =>
  `${kind.toLowerCase()}.${apiVersion.split('/')[0]}/${metadata.name}`;

/** Empty if the webhooks were not registered when the request was created. */
export function requesterOf(request: KubeObject): string {
  const name = own(own(request.spec, 'requester'), 'username');
  return typeof name === 'string' ? name : '';
}
