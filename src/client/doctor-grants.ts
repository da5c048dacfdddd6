import { accesses } from '../api/access/kinds.ts';
import { requestLabel } from '../api/access/names.ts';
import type { KubeObject } from '../api/object.ts';
import { roleBindings } from '../api/resources.ts';
import { formatTime } from '../kit/clock.ts';
import { listIn } from '../kit/json-value.ts';
import type { Check } from './doctor-check.ts';
import { specOf, stateOf, statusOf } from './request-state.ts';

/** The server closes access within seconds of its end. */
const MAX_LATE_MS = 60_000;

/** RoleBindings that grant access which should be closed. One without subjects grants none. */
export const openGrants: Check = {
  name: 'open grants',
  ok: 'each RoleBinding of a grant has its request, whose access has not ended',
  async faults({ cluster, serverAheadMs }, { clock }) {
    const { items } = await cluster.client.list(roleBindings, { labelSelector: requestLabel });
    const requests = new Map<string | undefined, KubeObject>();
    for (const { request } of accesses) {
      for (const one of (await cluster.client.list(request.resource)).items) requests.set(one.metadata.uid, one);
    }
    const nowMs = clock.now() + (serverAheadMs() ?? 0);
    return items
      .filter((binding) => listIn(binding, 'subjects').length > 0)
      .flatMap(({ metadata: { namespace = '', name, labels } }) => {
        const binding = `RoleBinding ${namespace}/${name}`;
        const request = requests.get(labels?.[requestLabel]);
        if (!request)
          return [
            `${binding} has no request and may still grant access; the server deletes such RoleBindings: check that it runs`,
          ];
        const end = endText(request, nowMs);
        if (end === undefined) return [];
        const target = `${request.kind.toLowerCase()} ${request.metadata.name} -n ${namespace}`;
        return [
          `${binding} still grants access, although its request ${end}; if this stays, the server cannot delete it: read the condition Ready of the request (kubectl describe ${target}) and the log of the server; if the chart value namespaces was shortened, list ${namespace} again`,
        ];
      });
  },
};

/** Why access should be closed, as a clause; undefined if it may be open. */
function endText(request: KubeObject, nowMs: number): string | undefined {
  const { ended } = statusOf(request);
  if (ended) return `ended at ${ended.at} (${ended.reason})`;
  if (specOf(request).revoked) return 'was revoked';
  if (request.metadata.deletionTimestamp !== undefined) return `was deleted at ${request.metadata.deletionTimestamp}`;
  const { endsMs } = stateOf(request);
  return endsMs !== undefined && nowMs - endsMs > MAX_LATE_MS
    ? `should have ended at ${formatTime(endsMs)}`
    : undefined;
}
