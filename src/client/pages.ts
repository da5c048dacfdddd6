import type { KubeObject, Resource } from '../api/object.ts';
import { isForbidden } from '../kube/errors.ts';
import type { Page } from '../kube/list-pages.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { exits } from './command-spec.ts';
import type { Printer } from './output.ts';
import { Problem, plainMessage, readEach } from './problem.ts';

/**
 * Prints the matching objects of all kinds that the user may list, each page as it arrives; resolves
 * to their number. Without permission for all namespaces, rejects with a Problem that recommends -n.
 */
export async function printPages<T extends KubeObject>(
  { cluster, scope, note }: ClusterConnection,
  resources: readonly Resource[],
  printer: Pick<Printer<T>, 'add' | 'end'>,
  matches: (object: T) => boolean | Promise<boolean>,
): Promise<number> {
  let count = 0;
  const printed = new Set<string | undefined>();
  const print = async (pages: readonly (Page | undefined)[]): Promise<void> => {
    // An expired list restarts from its first page.
    const items = pages.flatMap((page) =>
      ((page?.items ?? []) as T[]).filter(({ metadata: { uid } }) => uid === undefined || !printed.has(uid)),
    );
    // All at once, because `matches` may ask the API server; the transport limits the calls.
    const results = await Promise.all(items.map(matches));
    const found = items.filter((_, index) => results[index]);
    for (const { metadata } of found) printed.add(metadata.uid);
    printer.add(found);
    count += found.length;
  };
  try {
    const lists = resources.map((resource) => cluster.own.pages(resource, scope)[Symbol.asyncIterator]());
    // All first pages together, because the first rows set the widths of the columns.
    const first = await readEach(resources, async (_, index) => lists[index]?.next(), note);
    await print(first.map((page) => page?.value));
    // One that the user may not read has ended.
    for (const list of lists) {
      for (let next = await list.next(); !next.done; next = await list.next()) await print([next.value]);
    }
  } catch (error) {
    const hasNamespaces = resources.some(({ namespaced }) => namespaced);
    if (scope.namespace !== undefined || !hasNamespaces || !isForbidden(error) || !(error instanceof Error))
      throw error;
    throw new Problem(
      exits.denied,
      `denied: ${plainMessage(error)}; use -n NAMESPACE instead of -A, or ask an administrator for this permission`,
    );
  }
  printer.end();
  return count;
}
