import { callbackPath, type ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { clusterInventories } from '../../api/inventory/names.ts';
import { type Clock, formatMicroTime, formatTime } from '../../kit/clock.ts';
import type { RunRecord } from '../core/run-record.ts';
import type { Entry } from '../entry.ts';
import { runId } from '../key.ts';
import type { ComponentClient, Reply, RunToken } from '../ports.ts';
import type { Registration } from '../registration.ts';

export interface CallsDeps {
  readonly components: ComponentClient;
  readonly clock: Clock;
  /** The API server as components reach it. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a slash at the end. */
  readonly callbackUrl: string;
}

/** Tells components to run. */
export class Calls {
  readonly #deps: CallsDeps;

  constructor(deps: CallsDeps) {
    this.#deps = deps;
  }

  async call(
    entry: Entry,
    record: RunRecord,
    token: RunToken,
    registration: Registration,
    signal: AbortSignal,
  ): Promise<Reply> {
    return this.#deps.components.invoke(registration, this.#request(entry, record, token, registration), signal);
  }

  #request(entry: Entry, record: RunRecord, token: RunToken, { timeoutMs }: Registration): ReconcileRequest {
    const { api, callbackUrl, clock } = this.#deps;
    const { namespace, name, uid } = entry.ref;
    const { group, version, plural } = clusterInventories;
    const id = runId({ entryUid: uid, component: record.component }, record.seq);
    return {
      protocol: 'v1',
      run: {
        id,
        seq: record.seq,
        attempt: record.attempt,
        deadline: formatMicroTime(clock.now() + timeoutMs),
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
}
