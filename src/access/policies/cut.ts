import { accessVotes } from '../../api/access/access-vote.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import { requestLabel, templateConditions } from '../../api/access/names.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../api/object.ts';
import { pods, roleBindings, roles } from '../../api/resources.ts';
import type { Journal } from '../../audit/journal.ts';
import type { Client } from '../../kube/client.ts';
import { findObject } from '../../kube/client.ts';
import { isConflict, isNotFound, isRefused } from '../../kube/errors.ts';
import type { AccessKind } from '../access-kind.ts';
import type { OwedReviews } from '../emergency/owed-reviews.ts';
import { isDeniedOrEnded } from '../lifecycle/request-conditions.ts';
import type { Violation } from '../policy/policy.ts';
import { handsOutPrivilege } from '../policy/template-permissions.ts';
import { type RequestView, type TemplateView, viewRequest, viewTemplate } from '../stores/access-views.ts';
import { viewVote } from '../stores/vote-view.ts';

/** How requests and templates of one kind get their verdict. */
export interface CutKind {
  readonly kind: AccessKind;
  /** Denies a request without a grant. */
  deny(request: RequestView, violation: Violation, signal: AbortSignal): Promise<unknown>;
  /** Ends a grant that is not open. */
  denyGranted(request: RequestView, violation: Violation, signal: AbortSignal): Promise<unknown>;
  /** Of open access. */
  refuseExtensions(request: RequestView, violation: Violation, signal: AbortSignal): Promise<unknown>;
  /** Until its spec changes. */
  rejectTemplate(template: TemplateView, signal: AbortSignal): Promise<unknown>;
}

interface CutDeps {
  readonly client: Client;
  readonly kinds: readonly CutKind[];
  readonly reviews: Pick<OwedReviews, 'of'>;
  readonly journal: Journal;
}

/**
 * Voids what may have been created or changed while the policies were not in force. Lists once,
 * consistently; what comes later met them. A stop anywhere repeats it, without harm.
 */
export class Cut {
  readonly #deps: CutDeps;

  constructor(deps: CutDeps) {
    this.#deps = deps;
  }

  /** `isInstallation`: templates without an author are left to `trustExistingTemplates`. */
  async run(violation: Violation, isInstallation: boolean, signal: AbortSignal): Promise<void> {
    const { kinds, client } = this.#deps;
    const children = await this.#listChildren(signal);
    const alive = new Set(children.map(({ object }) => object.metadata.uid));
    const listed = new Set<string>();
    for (const cutKind of kinds) {
      const { requestResource: resource } = cutKind.kind;
      const { items } = await client.list(resource, { signal });
      await each(items, async (item) => {
        const open = await this.#settle(cutKind, item, { violation, alive }, signal);
        for (const uid of open) listed.add(uid);
      });
    }
    await each(children, ({ resource, object }) => this.#sweep(resource, object, listed, signal));
    await this.#deleteVotes(signal);
    for (const cutKind of kinds) {
      const { items } = await client.list(cutKind.kind.templateResource, { signal });
      await each(items, (item) => this.#judgeTemplate(cutKind, item, isInstallation, signal));
    }
  }

  async #listChildren(signal: AbortSignal): Promise<{ readonly resource: Resource; readonly object: KubeObject }[]> {
    const lists = await Promise.all(
      [roleBindings, roles, pods].map(async (resource) => {
        const { items } = await this.#deps.client.list(resource, { labelSelector: requestLabel, signal });
        return items.map((object) => ({ resource, object }));
      }),
    );
    return lists.flat();
  }

  /** Resolves to the uids of the objects of open access. */
  async #settle(
    cutKind: CutKind,
    item: KubeObject,
    { violation, alive }: { readonly violation: Violation; readonly alive: ReadonlySet<string | undefined> },
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { requestKind, requestResource } = cutKind.kind;
    let open: readonly string[] = [];
    await this.#retrying(requestResource, item, signal, async (current) => {
      const request = viewRequest({ ...current, kind: requestKind });
      open = [];
      if (!request || request.ended || isDeniedOrEnded(request)) return;
      const isOpen = request.children.some(({ kind, uid }) => kind === 'RoleBinding' && alive.has(uid));
      if (!request.grant) await cutKind.deny(request, violation, signal);
      else if (!isOpen) await cutKind.denyGranted(request, violation, signal);
      else {
        open = request.children.map(({ uid }) => uid);
        await cutKind.refuseExtensions(request, violation, signal);
      }
    });
    return open;
  }

  /** Only the server may create objects with this label, and it lists those of open access. */
  async #sweep(
    resource: Resource,
    { metadata }: KubeObject,
    listed: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<void> {
    const { uid } = metadata;
    if (uid === undefined || listed.has(uid)) return;
    try {
      await this.#deps.client.delete(resource, metadata, { uid, propagation: 'Background', signal });
    } catch (error) {
      // In a namespace where the server opens no access, it may delete nothing.
      if (!isConflict(error) && !isRefused(error)) throw error;
    }
  }

  /** Approvals of extensions, and votes that would settle a review. Denials count. */
  async #deleteVotes(signal: AbortSignal): Promise<void> {
    const { client, reviews, journal } = this.#deps;
    const { items } = await client.list(accessVotes, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) return { items: [] };
      throw error;
    });
    await each(items, async (item) => {
      const vote = viewVote({ ...item, kind: accessVotes.kind });
      if (!vote) return;
      const { about, decision } = vote.spec;
      const approvesExtension = about !== 'Access' && about !== 'Review' && decision === 'Approve';
      if (!approvesExtension && !(about === 'Review' && reviews.of(vote.requestUid))) return;
      const { namespace, name, uid } = vote;
      const what = {
        operation: 'DELETE',
        apiVersion: apiVersionOf(accessVotes),
        kind: accessVotes.kind,
        namespace,
        name,
        uid,
      };
      await journal.append({
        event: 'policies',
        verdict: 'deleted',
        who: { user: '' },
        what,
        code: 'PoliciesMissing',
        message: 'nothing proves who voted',
      });
      await client.delete(accessVotes, vote, { uid, signal });
    });
  }

  async #judgeTemplate(
    cutKind: CutKind,
    item: KubeObject,
    isInstallation: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { templateKind, templateResource } = cutKind.kind;
    const access = accessOfTemplate(templateKind);
    await this.#retrying(templateResource, item, signal, async (current) => {
      const template = viewTemplate(access)({ ...current, kind: templateKind });
      if (!template || (isInstallation && !template.spec.author)) return;
      if (isCertified(template) && !handsOutPrivilege(template.spec)) return;
      await cutKind.rejectTemplate(template, signal);
    });
  }

  /** Calls `act` with the latest object of that uid. */
  async #retrying(
    resource: Resource,
    item: KubeObject,
    signal: AbortSignal,
    act: (current: KubeObject) => Promise<void>,
  ): Promise<void> {
    let current: KubeObject | undefined = item;
    for (let attempt = 1; current !== undefined && current.metadata.uid === item.metadata.uid; attempt++) {
      try {
        return await act(current);
      } catch (error) {
        if (isNotFound(error)) return;
        if (!isConflict(error) || attempt === 5) throw error;
        current = await findObject(this.#deps.client, resource, item.metadata, { signal });
      }
    }
  }
}

/** The leader found its author while the policies were in force; see `TemplateReconciler`. */
export function isCertified({ conditions, generation }: Pick<TemplateView, 'conditions' | 'generation'>): boolean {
  const author = conditions.find(({ type }) => type === templateConditions.authorHoldsRights);
  return (
    author?.observedGeneration === generation &&
    author.reason !== 'PoliciesMissing' &&
    author.reason !== 'AuthorUnknown'
  );
}

/** A few at a time. */
async function each<Item>(items: readonly Item[], act: (item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const run = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: 8 }, run));
}
