import type { KubeObject } from '../api/object.ts';
import { requesterOf, templateResource, typeOf } from './access-requests.ts';
import { templateSpecOf } from './approver-text.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { cannotOpen, specOf, stateOf, statusOf } from './request-state.ts';
import { templateOf } from './voted-template.ts';

/** What a request waits for, as `spec.about` of a vote: `Access`, `Extension-N`, or `Review`. */
export function awaitedDecision(request: KubeObject): string | undefined {
  const { approval, extensions = [] } = statusOf(request);
  if (approval?.state === 'ReviewOwed' || approval?.state === 'ReviewOverdue') return 'Review';
  if (cannotOpen(stateOf(request).state)) return undefined;
  if (approval?.state === 'Pending') return 'Access';
  const index = (specOf(request).extensions ?? []).findIndex((_, at) => extensions[at]?.state === 'Pending');
  return index < 0 ? undefined : `Extension-${index + 1}`;
}

/** Only deny: the user has approved already, or is in no group whose approval is required. */
export type Choice = 'approve, deny' | 'deny (you approved)' | 'deny';

export interface Decision {
  readonly choice: Choice;
  /** Undefined if it does not exist, or the user may not read it. */
  readonly template: KubeObject | undefined;
}

/**
 * What the user can decide about a request, if anything. Reads user and templates once. An
 * unreadable template passes: the server checks each vote.
 */
export function choicesOf(connection: ClusterConnection): (request: KubeObject) => Promise<Decision | undefined> {
  const { cluster, whoAmI } = connection;
  interface TemplateFacts {
    readonly mayDecide: boolean;
    readonly template: KubeObject | undefined;
  }
  const factsByTemplate = new Map<string, Promise<TemplateFacts>>();
  const readFacts = async (request: KubeObject): Promise<TemplateFacts> => {
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
    const facts = factsByTemplate.get(key) ?? readFacts(request);
    factsByTemplate.set(key, facts);
    const [{ username, groups }, { mayDecide, template }] = await Promise.all([whoAmI(), facts]);
    const about = awaitedDecision(request);
    if (!mayDecide || about === undefined || requesterOf(request) === username) return undefined;
    const decision = (choice: Choice): Decision => ({ choice, template });
    if (about === 'Review') return decision('approve, deny');
    if (about === 'Access' && hasApproved(request, username)) return decision('deny (you approved)');
    return decision(template && !isInRequiredGroup(template, groups) ? 'deny' : 'approve, deny');
  };
}

const hasApproved = (request: KubeObject, username: string): boolean =>
  (statusOf(request).approval?.votes ?? []).some(
    ({ voter, decision, ignored }) => voter === username && decision === 'Approve' && ignored === undefined,
  );

/** Whether an approval by these groups can count for the template. */
function isInRequiredGroup(template: KubeObject, groups: readonly string[]): boolean {
  const entries = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  return (
    entries.length === 0 || entries.some((entry) => !entry.groups || entry.groups.some((one) => groups.includes(one)))
  );
}
