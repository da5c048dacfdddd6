import { fits } from '../access/policy/vote-count.ts';
import type { KubeObject } from '../api/object.ts';
import { requesterOf, templateResource, typeOf } from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { cannotOpen, specOf, stateOf, statusOf, templateSpecOf } from './request-state.ts';
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

export type Choice = 'approve, deny' | 'deny (you approved)' | 'deny (others must approve)';

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
    const [user, { mayDecide, template }] = await Promise.all([whoAmI(), facts]);
    const about = awaitedDecision(request);
    if (!mayDecide || about === undefined || requesterOf(request) === user.username) return undefined;
    const decision = (choice: Choice): Decision => ({ choice, template });
    if (about === 'Review') return decision('approve, deny');
    if (about === 'Access' && hasApproved(request, user.username)) return decision('deny (you approved)');
    const { approvals } = (template && templateSpecOf(template).accessConfig) ?? {};
    const canCount = !approvals || approvals.all.some((entry) => fits({ voter: user }, entry));
    return decision(canCount ? 'approve, deny' : 'deny (others must approve)');
  };
}

const hasApproved = (request: KubeObject, username: string): boolean =>
  (statusOf(request).approval?.votes ?? []).some(
    ({ voter, decision, ignored }) => voter === username && decision === 'Approve' && ignored === undefined,
  );
