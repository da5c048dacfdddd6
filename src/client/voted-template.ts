import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { findObject } from '../kube/client.ts';
import { ApiError, isForbidden } from '../kube/errors.ts';
import { requestWithFlags, type TypedObject, templateResource } from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';
import { specOf } from './request-state.ts';

/** Undefined if it does not exist, or the user may not read it. */
export async function templateOf(
  { cluster, namespace }: Pick<ClusterConnection, 'cluster' | 'namespace'>,
  { type, object }: TypedObject,
): Promise<KubeObject | undefined> {
  const name = specOf(object).templateName ?? '';
  const template = await unlessForbidden(findObject(cluster.client, templateResource(type), { namespace, name }, {}));
  return template instanceof Error ? undefined : template;
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

/** As users type it: the generation, and 8 characters of the uid. */
export const versionOf = ({ metadata: { uid = '', generation = 0 } }: KubeObject): string =>
  `${generation}.${uid.slice(0, 8)}`;

/**
 * The template whose version an approval names. Rejects with a Problem if it is not `seenVersion`
 * or, without that, if it changed after the request was created: the user may have seen an older
 * one.
 */
export async function votedTemplate(
  connection: ClusterConnection,
  found: TypedObject,
  seenVersion: string | undefined,
): Promise<KubeObject | undefined> {
  const template = await templateOf(connection, found);
  if (!template) return undefined;
  const { name } = template.metadata;
  const target = requestWithFlags(connection, found.type, found.object.metadata.name);
  const remedy = `read it with: ${connection.program} show ${target}; then approve with --template-version ${versionOf(template)}`;
  if (seenVersion !== undefined && seenVersion !== versionOf(template))
    throw new Problem(
      exits.failed,
      `template ${name} has changed: --template-version is ${quote(seenVersion)}, and it is now ${versionOf(template)}; ${remedy}`,
    );
  if (seenVersion === undefined && changedAfterMs(template, found.object) > 0)
    throw new Problem(
      exits.failed,
      `template ${name} was changed at ${authorTime(template)}, after the request was created; ${remedy}`,
    );
  return template;
}

const authorTime = (template: KubeObject): string => String(own(own(template.spec, 'author'), 'time'));

/**
 * How much later than the request the template was changed: whole seconds, so 0 says nothing; NaN
 * if a time is missing.
 */
export function changedAfterMs(template: KubeObject, { metadata: { creationTimestamp = '' } }: KubeObject): number {
  return (parseTime(authorTime(template)) ?? Number.NaN) - (parseTime(creationTimestamp) ?? Number.NaN);
}
