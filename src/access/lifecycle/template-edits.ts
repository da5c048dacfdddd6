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
 * How later edits of a template restrict its open grants. An edit never adds: a grant is never longer than it says, and admits no one but
 * its subjects. An edit that is reverted before it takes effect has no consequence.
 */
export class TemplateEdits {
  readonly #deps: { readonly kind: AccessKind; readonly client: Client };
  /** By request uid: the template generation for which the requester was found to hold the permissions without any group. */
  readonly #holdsAtGeneration = new Map<string, number>();

  constructor(deps: { readonly kind: AccessKind; readonly client: Client }) {
    this.#deps = deps;
  }

  /** When the edited template ends the grant, epoch ms; Infinity if it was not edited, or its maxDuration cannot be read. */
  endOf(request: RequestView): number {
    const template = this.#edited(request);
    const longest = template && maxDurationMs(template.spec.accessConfig);
    return longest === undefined ? Number.POSITIVE_INFINITY : request.createdAtMs + longest;
  }

  /** Why the edited template no longer allows the grant; undefined if it does, or if it was not edited. */
  async ending(request: RequestView, signal: AbortSignal): Promise<Ending | undefined> {
    const template = this.#edited(request);
    const { requester } = request.spec;
    if (!template || !requester) return undefined;
    const { accessConfig } = template.spec;
    const now = subjectsOf(accessConfig, requester);
    const groups = (request.grant?.subjects ?? []).filter(({ kind }) => kind === 'Group');
    const allNamed = groups.every((group) => now.some(({ kind, name }) => kind === 'Group' && name === group.name));
    if (!allNamed) return 'NoLongerAllowed';
    if (isEligibleByGroup(requester, accessConfig.allowedGroups)) return undefined;
    if (this.#holdsAtGeneration.get(request.uid) === template.generation) return undefined;
    const asked = { kind: this.#deps.kind.templateKind, name: template.name, spec: template.spec };
    if (!(await alreadyHolds(this.#deps.client, requester, request.namespace, asked, signal))) return 'NoLongerAllowed';
    this.#holdsAtGeneration.set(request.uid, template.generation);
    return undefined;
  }

  forget(uid: string): void {
    this.#holdsAtGeneration.delete(uid);
  }

  /** The template, if its generation is later than that of the grant. A store that lags behind shows no later generation. */
  #edited({ namespace, grant }: RequestView): TemplateView | undefined {
    if (!grant) return undefined;
    const template = this.#deps.kind.templates.get(keyOf({ namespace, name: grant.template.name }));
    const isLater = template?.uid === grant.template.uid && template.generation > grant.template.generation;
    return isLater ? template : undefined;
  }
}
