import { callbackPath, type ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { clusterInventories } from '../../api/inventory/names.ts';
import { formatMicroTime, formatTime } from '../../kit/clock.ts';
import type { RunToken } from '../core/memory.ts';
import type { RunRecord } from '../core/run-record.ts';
import type { Entry } from '../entry.ts';
import { runId } from '../key.ts';

/** How components reach the API server and this server. */
export interface Addresses {
  /** `ca` in PEM; without it, components use the public CAs. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a trailing slash. */
  readonly callbackUrl: string;
}

/** `deadlineMs`: of the call. */
export function requestOf(
  { api, callbackUrl }: Addresses,
  entry: Entry,
  record: RunRecord,
  token: RunToken,
  deadlineMs: number,
): ReconcileRequest {
  const { namespace, name, uid } = entry.ref;
  const { group, version, plural } = clusterInventories;
  const id = runId({ entryUid: uid, component: record.component }, record.seq);
  return {
    protocol: 'v1',
    run: {
      id,
      seq: record.seq,
      attempt: record.attempt,
      deadline: formatMicroTime(deadlineMs),
      reasons: [...record.reasons],
    },
    operation: record.operation,
    component: record.component,
    entry: {
      url: `${api.url.replace(/\/+$/, '')}/apis/${group}/${version}/namespaces/${namespace}/${plural}/${name}`,
      id: uid,
      resourceVersion: entry.resourceVersion,
    },
    auth: {
      token: token.token,
      expires: formatTime(token.expiresAtMs),
      ...(api.ca === undefined ? {} : { ca: api.ca }),
    },
    callback: `${callbackUrl}${callbackPath}${id}`,
  };
}
