import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { findObject } from '../kube/client.ts';
import { requestWithFlags, type TypedObject, type TypeName, templateResource } from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { exits } from './command-spec.ts';
import { Problem, unlessForbidden } from './problem.ts';
import { specOf } from './request-state.ts';

type Location = Pick<ClusterConnection, 'cluster' | 'namespace'>;

/** As `readTemplate`, for a request. */
export const templateOf = (location: Location, { type, object }: TypedObject): Promise<KubeObject | undefined> =>
  readTemplate(location, type, specOf(object).templateName ?? '');

/** Undefined if it does not exist, or the user may not read it. */
export async function readTemplate(
  { cluster, namespace }: Location,
  type: TypeName,
  name: string,
): Promise<KubeObject | undefined> {
  const template = await unlessForbidden(findObject(cluster.client, templateResource(type), { namespace, name }, {}));
  return template instanceof Error ? undefined : template;
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
  const changedAt = String(own(own(template.spec, 'author'), 'time'));
  const changedMs = parseTime(changedAt) ?? Number.NaN;
  const createdMs = parseTime(found.object.metadata.creationTimestamp ?? '') ?? Number.NaN;
  if (seenVersion === undefined && changedMs > createdMs)
    throw new Problem(
      exits.failed,
      `template ${name} was changed at ${changedAt}, after the request was created; ${remedy}`,
    );
  return template;
}
