import { accesses } from '../../api/access/kinds.ts';
import { templateConditions } from '../../api/access/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { listIn, own } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';

/** So that the record stays below 1 MiB. */
export const maxUnjudged = 10_000;

/** A version of a template, as in the record. */
export const versionKey = (uid: string, generation: number): string => `${uid}/${generation}`;

/** Whether the cluster has no object of access yet. */
export async function isUntouched(client: Client, signal: AbortSignal): Promise<boolean> {
  const resources = accesses.flatMap(({ request, template }) => [request.resource, template.resource]);
  const lists = await Promise.all(resources.map((resource) => client.list(resource, { limit: 1, signal })));
  return lists.every(({ items }) => items.length === 0);
}

/**
 * The versions of edited templates about whose author no leader has a verdict. A version of
 * generation 1 is as old as its template, so it needs no list.
 */
export async function unjudgedVersions(client: Client, signal: AbortSignal): Promise<string[]> {
  const lists = await Promise.all(accesses.map(({ template }) => client.list(template.resource, { signal })));
  return lists.flatMap(({ items }) => items.flatMap((template) => unjudged(template) ?? []));
}

function unjudged(template: KubeObject): string | undefined {
  const { uid = '', generation = 0 } = template.metadata;
  const isJudged = listIn(template.status, 'conditions').some(
    (condition) =>
      own(condition, 'type') === templateConditions.authorHoldsRights &&
      own(condition, 'observedGeneration') === generation &&
      own(condition, 'reason') !== 'AuthorUnknown',
  );
  return isJudged || generation <= 1 ? undefined : versionKey(uid, generation);
}
