import { allowDeletesAnnotation } from '../../api/binding/names.ts';
import type { Resource } from '../../api/object.ts';
import type { BindingDeps } from '../deps.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView } from '../stores/views.ts';
import { gathered } from '../sync/gathered.ts';
import type { Syncer } from '../sync/syncer.ts';
import { claimable, claimableResources, formatGroupResource } from './claimable.ts';
import { type ClaimedKind, openClaimedKind } from './claimed-kind.ts';
import { openReferences } from './open-references.ts';
import { referrersOf } from './referrers.ts';
import { claimSelector } from './selector.ts';
import { openUsedNamespaces } from './used-namespaces.ts';

export interface ClaimsOptions {
  readonly session: ProviderSession;
  /** Its claims are synced; a change of them, or of what is bound, takes new Claims. */
  readonly exported: ExportView;
  /** Called when `problems()` may have changed; a few times a second at most. */
  readonly onProblems?: () => void;
  /** Uniform in [0, 1), for backoff. Default Math.random. */
  readonly random?: () => number;
}

/**
 * What keeps the objects that one export claims in step, both ways: one controller for each claimed kind. It holds no objects up:
 * they carry no finalizer of ours.
 */
export type Claims = Omit<Syncer, 'held' | 'served'>;

/** Changes are gathered for so long before they are told, milliseconds. */
const tellMs = 200;

/** Opens the watches of what is claimed; what they show is acted on once the controllers run. */
export function openClaims(options: ClaimsOptions, deps: BindingDeps): Claims {
  const { session, exported, random = Math.random } = options;
  const claims = exported.permissionClaims;
  const tell = gathered(deps.clock, tellMs, options.onProblems ?? (() => undefined));
  const wrong = claims
    .filter((claim) => !claimable(claim))
    .map(
      (claim) =>
        `The claim on ${formatGroupResource(claim)} is ignored: a provider may claim configmaps, secrets and serviceaccounts`,
    );
  const used = openUsedNamespaces(session, exported, deps);
  const open = (resource: Resource): ClaimedKind[] => {
    const own = claims.filter((claim) => claimable(claim) === resource);
    const references = openReferences(own, exported, referrersOf(session, exported, deps));
    const selector = claimSelector(own, references.isEmpty ? undefined : references.index);
    wrong.push(...selector.problems, ...references.problems);
    if (selector.isEmpty) return [];
    const onChange = tell.soon;
    return [openClaimedKind({ session, exported, resource, selector, references, used, random, onChange }, deps)];
  };
  const kinds = claimableResources.flatMap(open);
  const each = (act: (kind: ClaimedKind) => void): void => {
    for (const kind of kinds) act(kind);
  };
  return {
    controllers: kinds.map(({ controller }) => controller),
    resync: () => each((kind) => kind.resync()),
    allowDeletes: () => each((kind) => kind.allowDeletes()),
    problems: () => [
      ...kinds.flatMap(({ held, resource }) => (held > 0 ? [`${resource.plural}: ${heldBack(held)}`] : [])),
      ...wrong,
      ...kinds.flatMap((kind) => kind.problems()),
    ],
    size: () => ({
      objects: sum(kinds.map(({ size }) => size.objects)),
      copies: sum(kinds.map(({ size }) => size.copies)),
    }),
    get watchAgeMs() {
      return Math.max(0, ...kinds.map(({ watchAgeMs }) => watchAgeMs));
    },
    close() {
      tell.stop();
      each((kind) => kind.close());
      used.close();
    },
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

const heldBack = (copies: number): string =>
  `${copies} copies have no original any more, and nobody saw those being deleted. They are kept, because so many at once look like lost data; restore the originals, or set the annotation ${allowDeletesAnnotation} on the binding to a new value to have the copies deleted`;
