import { statusOf } from '../../src/access/lifecycle/status.ts';
import type { RequestStatus } from '../../src/api/access/status.ts';
import { requestView } from './request-views.ts';

/** A status with its state and the conditions that summarize the others, as the server writes them. */
export function summarized(status: object & { readonly conditions?: readonly object[] }): object {
  const { grant, ended, ready, conditions = [], children = [] } = status as Partial<RequestStatus>;
  // As if access were open once it is granted.
  const created = grant || ready ? [{ kind: 'RoleBinding' as const, name: 'debug', uid: 'b-1' }] : children;
  const request = requestView({ grant, ended, conditions, children: ended ? [] : created });
  const shown = statusOf(request, { is: 'extended', extensions: [] }, 0);
  return { state: shown.state, ...status, ...(status.conditions ? { conditions: shown.conditions } : {}) };
}
