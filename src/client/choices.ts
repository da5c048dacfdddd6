import type { KubeObject } from '../api/object.ts';
import { requesterOf, templateResource, typeOf } from './access-requests.ts';
import { templateSpecOf } from './approver-text.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { cannotOpen, specOf, stateOf, statusOf } from './request-state.ts';
import { templateOf } from './voted-template.ts';

/** The decision of approvers that a request waits for, as `about` of a vote; undefined if it waits for none. */
export function awaitedDecision(request: KubeObject): string | undefined {
  const { approval, extensions = [] } = statusOf(request);
  if (approval?.state === 'ReviewOwed' || approval?.state === 'ReviewOverdue') return 'Review';
  if (cannotOpen(stateOf(request).state)) return undefined;
  if (approval?.state === 'Pending') return 'Access';
  const index = (specOf(request).extensions ?? []).findIndex((_, at) => extensions[at]?.state === 'Pending');
  return index < 0 ? undefined : `Extension-${index + 1}`;
}

/**
 * What the user can decide about a request that waits for a decision: approve or deny it, or only deny it, because they have approved it
 * already, or are in none of the groups that the template needs.
 */
export type Choice = 'approve, deny' | 'deny (you approved)' | 'deny';

/**
 * Returns a function that finds what the user can decide about a request; undefined if nothing. It asks the API server once for the user,
 * and once for each template. If the user may not read a template, or the API server does not tell their groups, the server decides.
 */
export function choicesOf(connection: ClusterConnection): (request: KubeObject) => Promise<Choice | undefined> {
  const { cluster, whoAmI } = connection;
  interface Answer {
    readonly mayDecide: boolean;
    readonly template: KubeObject | undefined;
  }
  const answers = new Map<string, Promise<Answer>>();
  const ask = async (request: KubeObject): Promise<Answer> => {
    const { group, plural } = templateResource(typeOf(request));
    const { namespace = '' } = request.metadata;
    const name = specOf(request).templateName ?? '';
    const [mayDecide, template] = await Promise.all([
      cluster.own.isAllowed({ verb: 'approve', group, resource: plural, namespace, name }),
      templateOf({ cluster, namespace }, { type: typeOf(request), object: request }),
    ]);
    return { mayDecide, template };
  };
  return async (request) => {
    const key = JSON.stringify([typeOf(request), request.metadata.namespace, specOf(request).templateName]);
    const answer = answers.get(key) ?? ask(request);
    answers.set(key, answer);
    const [{ username, groups }, { mayDecide, template }] = await Promise.all([whoAmI(), answer]);
    const about = awaitedDecision(request);
    if (!mayDecide || about === undefined || requesterOf(request) === username) return undefined;
    if (about === 'Review') return 'approve, deny';
    if (about === 'Access' && hasApproved(request, username)) return 'deny (you approved)';
    return template && !isInNeededGroup(template, groups) ? 'deny' : 'approve, deny';
  };
}

const hasApproved = (request: KubeObject, username: string): boolean =>
  (statusOf(request).approval?.votes ?? []).some(
    ({ voter, decision, ignored }) => voter === username && decision === 'Approve' && ignored === undefined,
  );

/** Whether an approval of a member of `groups` can count for an entry of the template. */
function isInNeededGroup(template: KubeObject, groups: readonly string[]): boolean {
  const entries = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  return (
    entries.length === 0 || entries.some((entry) => !entry.groups || entry.groups.some((one) => groups.includes(one)))
  );
}
