import type { Ending } from '../../api/access/ending.ts';
import { keyOf } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { subjectsOf } from '../../rbac/roles.ts';
import type { AccessKind } from '../access-kind.ts';
import { alreadyHolds } from '../admission-reads.ts';
import { longestAccessMs } from '../policy/duration-choice.ts';
import { decidingGroupsOf, durationBoundsOf } from '../policy/emergency-policy.ts';
import { isEligibleByGroup } from '../policy/request-policy.ts';
import { accessEndMs, type RequestView, type TemplateView } from '../stores/access-views.ts';
import { accessStartMs } from './request-ends.ts';

/**
 * How later edits of a template restrict open grants: no edit moves an end later, or adds subjects.
 * A new `extension.total` limits access that was extended before. A shorter end has no effect if
 * another edit reverts it in time.
 */
export class TemplateEdits {
  readonly #deps: TemplateEditsDeps;
  /** By request uid: the generation whose permissions the requester already held. Saves reviews. */
  readonly #heldAtGeneration = new Map<string, number>();

  constructor(deps: TemplateEditsDeps) {
    this.#deps = deps;
  }

  /** Epoch ms; Infinity without an edit, or if a duration of the template is invalid. */
  latestEndMs(request: RequestView): number {
    const template = this.#edited(request);
    const config = template && durationBoundsOf(request.spec, template.spec.accessConfig);
    const maxMs = config && longestAccessMs(config, this.#isExtended(request));
    return maxMs === undefined ? Number.POSITIVE_INFINITY : accessStartMs(request) + maxMs;
  }

  async endingReason(request: RequestView, signal: AbortSignal): Promise<Ending | undefined> {
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
    if (isEligibleByGroup(requester, decidingGroupsOf(request.spec, accessConfig))) return undefined;
    if (request.spec.emergency) return 'NoLongerAllowed';
    if (this.#heldAtGeneration.get(request.uid) === template.generation) return undefined;
    const { client, kind } = this.#deps;
    const grantingTemplate = { kind: kind.templateKind, name: template.name, spec: template.spec };
    if (!(await alreadyHolds(client, requester, request.namespace, grantingTemplate, signal))) return 'NoLongerAllowed';
    this.#heldAtGeneration.set(request.uid, template.generation);
    return undefined;
  }

  forget(uid: string): void {
    this.#heldAtGeneration.delete(uid);
  }

  #isExtended(request: RequestView): boolean {
    const grantedMs = parseTime(request.grant?.expiresAt ?? '') ?? 0;
    return (accessEndMs(request) ?? 0) > grantedMs;
  }

  /** Undefined also while the store has not received the edit. */
  #edited({ namespace, grant }: RequestView): TemplateView | undefined {
    if (!grant) return undefined;
    const template = this.#deps.kind.templates.get(keyOf({ namespace, name: grant.template.name }));
    const isLater = template?.uid === grant.template.uid && template.generation > grant.template.generation;
    return isLater ? template : undefined;
  }
}

interface TemplateEditsDeps {
  readonly kind: AccessKind;
  readonly client: Client;
}
