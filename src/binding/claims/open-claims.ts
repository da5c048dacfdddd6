import type { Resource } from '../../api/object.ts';
import type { Controller } from '../../engine/controller.ts';
import type { StoreHandle } from '../../kube/store.ts';
import type { BindingDeps } from '../deps.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView, GroupResource } from '../stores/views.ts';
import { claimable, claimableResources, formatGroupResource } from './claimable.ts';
import { type ClaimedKind, openClaimedKind } from './claimed-kind.ts';
import { openReferences } from './open-references.ts';
import { ProblemList } from './problem-list.ts';
import type { ReferrerView } from './reference-index.ts';
import { claimSelector } from './selector.ts';

export interface ClaimsOptions {
  readonly session: ProviderSession;
  /** Its claims are synced; a change of them takes new Claims. */
  readonly exported: ExportView;
  /**
   * Opens or shares the store of the consumer's objects of a kind that claims refer to, at best the one that its syncer has;
   * undefined when the kind cannot be watched. `close` releases it.
   */
  readonly referrers: (
    reference: GroupResource & { readonly versions?: readonly string[] },
  ) => StoreHandle<ReferrerView> | undefined;
  /** Makes the APIServiceNamespace for a namespace of the consumer, if there is none. Need not wait for its status. */
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  /** Called when `problems()` may read differently. */
  readonly onProblems?: () => void;
}

/** What keeps the objects that one export claims in step, both ways. */
export interface Claims {
  /** One for each claimed kind. */
  readonly controllers: readonly Controller[];
  /** Looks at every object again. */
  resync(): void;
  /** What is wrong with the claims, then with single objects, for the binding's condition; empty when all is well. */
  problems(): readonly string[];
  /** Ends the watches; the controllers have been removed before. */
  close(): void;
}

const shownProblems = 5;

export function openClaims(options: ClaimsOptions, deps: BindingDeps): Claims {
  const claims = options.exported.permissionClaims;
  const objects = new ProblemList(() => options.onProblems?.());
  const wrong = claims
    .filter((claim) => !claimable(claim))
    .map(
      (claim) =>
        `The claim on ${formatGroupResource(claim)} is ignored: a provider may claim configmaps, secrets and serviceaccounts.`,
    );
  const open = (resource: Resource): ClaimedKind[] => {
    const own = claims.filter((claim) => claimable(claim) === resource);
    const references = openReferences(own, options.exported, options.referrers);
    const selector = claimSelector(own, references.isEmpty ? undefined : references.index);
    wrong.push(...selector.problems, ...references.problems);
    if (selector.isEmpty) return [];
    return [openClaimedKind({ ...options, resource, selector, references, problems: objects }, deps)];
  };
  const kinds = claimableResources.flatMap(open);
  return {
    controllers: kinds.map(({ controller }) => controller),
    resync() {
      for (const kind of kinds) kind.resync();
    },
    problems: () => [...wrong, ...objects.list(shownProblems)],
    close() {
      for (const kind of kinds) kind.close();
    },
  };
}
