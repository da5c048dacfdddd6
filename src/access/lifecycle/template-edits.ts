import { keyOf } from '../../api/object.ts';
import type { Client } from '../../kube/client.ts';
import { subjectsOf } from '../../rbac/roles.ts';
import type { AccessKind } from '../access-kind.ts';
import { alreadyHolds } from '../admission-reads.ts';
import { maxDurationMs } from '../policy/duration-choice.ts';
import { isEligibleByGroup } from '../policy/request-policy.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { Ending } from './ending.ts';

/**
 * How later edits of a template restrict its open grants. An edit never extends a grant: neither its deadline nor its subjects. An edit
 * that is reverted before it takes effect has no consequence.
 */
export class TemplateEdits {
  readonly #deps: { readonly kind: AccessKind; readonly client: Client };
  /** By request uid: the template generation whose permissions the requester holds without any group. */
  readonly #holdsAtGeneration = new Map<string, number>();

  constructor(deps: { readonly kind: AccessKind; readonly client: Client }) {
    this.#deps = deps;
  }

  /** When the edited template ends the grant, epoch ms; Infinity if the template was not edited or one of its durations is invalid. */
  endOf(request: RequestView): number {
    const template = this.#edited(request);
    const maxMs = template && maxDurationMs(template.spec.accessConfig);
    return maxMs === undefined ? Number.POSITIVE_INFINITY : request.createdAtMs + maxMs;
  }

  /** Why the edited template no longer allows the grant; undefined if it still does, or was not edited. Rejects as the client does. */
  async ending(request: RequestView, signal: AbortSignal): Promise<Ending | undefined> {
    const template = this.#edited(request);
    const { requester } = request.spec;
    if (!template || !requester) return undefined;
    const { accessConfig } = template.spec;
    const allowedSubjects = subjectsOf(accessConfig, requester);
    const grantedGroups = (request.grant?.subjects ?? []).filter(({ kind }) => kind === 'Group');
    const allAllowed = grantedGroups.every((group) =>
      allowedSubjects.some(({ kind, name }) => kind === 'Group' && name === group.name),
    );
    if (!allAllowed) return 'NoLongerAllowed';
    if (isEligibleByGroup(requester, accessConfig.allowedGroups)) return undefined;
    if (this.#holdsAtGeneration.get(request.uid) === template.generation) return undefined;
    const { client, kind } = this.#deps;
    const grantingTemplate = { kind: kind.templateKind, name: template.name, spec: template.spec };
    if (!(await alreadyHolds(client, requester, request.namespace, grantingTemplate, signal))) return 'NoLongerAllowed';
    this.#holdsAtGeneration.set(request.uid, template.generation);
    return undefined;
  }

  /** Discards what this process recorded for the request with this uid. Call it when the request no longer exists. */
  forget(uid: string): void {
    this.#holdsAtGeneration.delete(uid);
  }

  /** The template of the grant, if it was edited after the grant. A store that lags behind returns undefined. */
  #edited({ namespace, grant }: RequestView): TemplateView | undefined {
    if (!grant) return undefined;
    const template = this.#deps.kind.templates.get(keyOf({ namespace, name: grant.template.name }));
    const isLater = template?.uid === grant.template.uid && template.generation > grant.template.generation;
    return isLater ? template : undefined;
  }
}
