import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { CodedError, describe } from '../kit/errors.ts';
import type { Client } from '../kube/client.ts';
import {
  ApiError,
  CredentialError,
  isForbidden,
  isNotFound,
  isObjectNotFound,
  isWebhookDenial,
  TransportError,
} from '../kube/errors.ts';
import { exits } from './command-spec.ts';

/** Ends a command: its exit code, and one line for the user, with a remedy. */
export class Problem extends Error {
  override readonly name = 'Problem';
  constructor(
    readonly exitCode: number,
    message: string,
    /** A command whose help the printed line recommends. */
    readonly helpOf?: string,
  ) {
    super(message);
  }
}

/** Errors in the kubeconfig, which the user must correct. */
const kubeconfigCodes: readonly string[] = [
  'KubeconfigMissing',
  'KubeconfigInvalid',
  'KubeconfigContextNotFound',
  'InvalidTlsData',
];

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof ApiError) return problemOfApiError(error);
  if (error instanceof TransportError) {
    const remedy =
      error instanceof CredentialError
        ? 'check the user in the kubeconfig, or log in again, as for kubectl'
        : 'check the network and the kubeconfig, for example with: kubectl version';
    return new Problem(exits.failed, `cannot reach the cluster: ${error.message}; ${remedy}`);
  }
  if (error instanceof CodedError && kubeconfigCodes.includes(error.code))
    return new Problem(exits.usage, describe(error));
  // The client relies on the schema of the CRDs, so an object of another one can cause a TypeError.
  if (error instanceof TypeError)
    return new Problem(
      exits.failed,
      `the API server sent an object that this client cannot read (${describe(error)}); the CRDs of the cluster and this client may be of different versions: use the client of the server's version, or ask an administrator to apply the CRDs of that version`,
    );
  return new Problem(exits.failed, describe(error));
}

/** Of an answer if the API server serves the group, but not the resource. */
const notServed = 'could not find the requested resource';

/** The API server does not serve the kind. */
export const isNotServed = (error: unknown): boolean =>
  error instanceof ApiError && isNotFound(error) && (!isObjectNotFound(error) || error.message.includes(notServed));

/** Undefined without the object. Rejects as the client does, also if the kind is not served. */
export async function findServed(
  client: Pick<Client, 'get'>,
  resource: Resource,
  name: ObjectName,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(resource, name);
  } catch (error) {
    if (isNotFound(error) && !isNotServed(error)) return undefined;
    throw error;
  }
}

/** The error, if the user may not read. Rejects with any other: a decision needs the data. */
export async function unlessForbidden<T>(reading: Promise<T>): Promise<T | Error> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ApiError && isForbidden(error)) return error;
    throw error;
  }
}

/**
 * One answer for each kind, and undefined for those that the user may not read, which `note` names.
 * Rejects if the user may read none, and with any other error.
 */
export async function readEach<T>(
  resources: readonly Resource[],
  read: (resource: Resource, index: number) => Promise<T>,
  note: (text: string) => void,
): Promise<(T | undefined)[]> {
  const answers = await Promise.all(resources.map((resource, index) => unlessForbidden(read(resource, index))));
  const refused = answers.filter((answer) => answer instanceof Error);
  if (refused[0] && refused.length === answers.length) throw refused[0];
  return answers.map((answer, index) => {
    if (!(answer instanceof Error)) return answer;
    note(`not searched: ${resources[index]?.plural}, which you may not read`);
    return undefined;
  });
}

function problemOfApiError(error: ApiError): Problem {
  if (isWebhookDenial(error)) return denialOf(error);
  if (error.code === 401) {
    return new Problem(
      exits.failed,
      'the API server does not accept your credentials; they may have expired: log in again, as for kubectl, and check with: kubectl auth whoami',
    );
  }
  if (isNotServed(error)) {
    return new Problem(
      exits.failed,
      'this cluster does not serve the kinds of drawbridge that this command needs; ask an administrator to install the feature of the command (inventory, binding, notify, or for all others access) or to apply its CRDs, or choose another --context',
    );
  }
  if (error.code === 403) return denialOf(error);
  return new Problem(exits.failed, plainMessage(error));
}

/** The user lacks a permission, whatever the object says. */
export const isByRbac = (error: unknown): boolean =>
  isForbidden(error) && !isWebhookDenial(error) && /^.* is forbidden: User "/.test(plainMessage(error));

/** Denied by RBAC, a policy, or a webhook. Those of drawbridge begin with a code. */
function denialOf(error: ApiError): Problem {
  const denial = plainMessage(error);
  // `default` comes from a kubeconfig without a namespace. Others may be mistyped: the API server
  // answers the same for a namespace that does not exist.
  const namespaceRemedy = denial.includes('in the namespace "default"')
    ? 'name another namespace with -n, or '
    : /cannot (create|list) resource "(pod|exec)access(requests|templates)" .* in the namespace "/.test(denial)
      ? 'check the name of the namespace, or '
      : '';
  const remedy = isByRbac(error)
    ? `; ${namespaceRemedy}ask an administrator for this permission${roleText(denial)}`
    : '';
  return new Problem(exits.denied, `denied: ${denial}${remedy}`);
}

/** ClusterRoles of the chart with the denied permission. Commands of sessions name theirs. */
function roleText(denial: string): string {
  const [, verb = '', resource = ''] = /cannot (\w+) resource "(\w+)"/.exec(denial) ?? [];
  if (resource === 'accessvotes' && readVerbs.includes(verb))
    return ', which the ClusterRoles drawbridge-approver and drawbridge-viewer of the chart give';
  if (resource === 'accessvotes' || verb === 'approve')
    return ', which the ClusterRole drawbridge-approver of the chart gives';
  if (['clusterinventories', 'reconcileruns'].includes(resource) && readVerbs.includes(verb))
    return ', which the ClusterRole drawbridge-inventory-viewer of the chart gives';
  if (resource === 'notificationproviders')
    return ', which the ClusterRole drawbridge-notification-admin of the chart gives';
  if (!/^(pod|exec)access(requests|templates)$/.test(resource)) return '';
  if (readVerbs.includes(verb))
    return ', which the ClusterRoles drawbridge-requester (to request access), drawbridge-approver (to approve it), and drawbridge-viewer (to see it) of the chart give';
  return resource.endsWith('requests') ? ', which the ClusterRole drawbridge-requester of the chart gives' : '';
}

const readVerbs: readonly string[] = ['get', 'list', 'watch'];

/** Without the name of the webhook or policy that denied. */
export function plainMessage(error: unknown): string {
  if (!(error instanceof ApiError)) return describe(error);
  const [cause] = error.causes;
  return (cause?.message ?? error.why).replace(
    /^ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: /,
    '',
  );
}
