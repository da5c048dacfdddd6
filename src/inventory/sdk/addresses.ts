import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { callbackPath } from '../../api/inventory/contract/request.ts';
import { clusterInventories } from '../../api/inventory/names.ts';
import type { ObjectName } from '../../api/object.ts';
import { quote } from '../../kit/errors.ts';
import { groupPath } from '../../kube/api-paths.ts';

/** What a component is configured with, and what it compares requests with: it sends tokens nowhere else. */
export interface Addresses {
  /** Of the API server, without a slash at the end. */
  readonly apiUrl: string;
  /** PEM; undefined: the public authorities. */
  readonly apiCa: string | undefined;
  /** Where runs report to, without a slash at the end. */
  readonly callbackUrl: string;
}

const name = '[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?';
const entryPath = new RegExp(
  `^${groupPath(clusterInventories)}/namespaces/(?<namespace>${name})/${clusterInventories.plural}/(?<name>${name})$`,
);

/** The entry that the URL of a request names; undefined when it is none of that API server. */
export function entryAt(apiUrl: string, url: string): Required<ObjectName> | undefined {
  if (!url.startsWith(`${apiUrl}/`)) return undefined;
  const { namespace, name } = entryPath.exec(url.slice(apiUrl.length))?.groups ?? {};
  return namespace && name ? { namespace, name } : undefined;
}

/** Why a request is not to be believed, whoever brought it: it names other addresses than those configured. Undefined: it may be. */
export function foreignAddress({ entry, auth, callback, run }: ReconcileRequest, own: Addresses): string | undefined {
  if (!entryAt(own.apiUrl, entry.url)) return `entry.url is ${quote(entry.url, 128)}, not an entry below ${own.apiUrl}`;
  if (auth.ca?.trim() !== own.apiCa?.trim())
    return 'auth.ca is not the authority that this component is configured with';
  const expected = `${own.callbackUrl}${callbackPath}${run.id}`;
  return callback === expected ? undefined : `callback is ${quote(callback, 128)}, not ${quote(expected, 256)}`;
}
