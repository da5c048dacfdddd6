import { withConditions } from '../../src/access/lifecycle/request-conditions.ts';
import type { Condition } from '../../src/api/object.ts';
import { requestView } from './request-views.ts';

/** The status of a request, with the conditions that summarize the others, as the server writes them. */
export const summarized = (status: object & { readonly conditions?: readonly object[] }): object => ({
  ...status,
  ...(status.conditions
    ? { conditions: withConditions(requestView({ conditions: status.conditions as Condition[] }), 0, []).conditions }
    : {}),
});
