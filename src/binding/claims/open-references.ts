import { quote } from '../../kit/errors.ts';
import type { ExportView, GroupResource, PermissionClaim } from '../stores/views.ts';
import { formatGroupResource } from './claimable.ts';
import { ReferenceIndex, type ReferencePaths } from './reference-index.ts';
import { parseReferencePath } from './reference-path.ts';
import type { ClaimReference, OpenReferrers, OpenReferrersOf } from './referrers.ts';

export interface OpenReferences {
  readonly index: ReferenceIndex;
  /** No claim goes by a reference. */
  readonly isEmpty: boolean;
  /** What is wrong with references, in sentences; those select nothing. */
  readonly problems: readonly string[];
  close(): void;
}

/** The index of all references that the claims of one kind name. */
export function openReferences(
  claims: readonly PermissionClaim[],
  exported: ExportView,
  open: OpenReferrersOf,
): OpenReferences {
  const index = new ReferenceIndex();
  const opened: OpenReferrers[] = [];
  const problems: string[] = [];
  for (const claim of claims) {
    for (const reference of claim.selector.references ?? []) {
      const kind = formatGroupResource(reference);
      const paths = referencePaths(reference, exported);
      const referrers = typeof paths === 'string' ? paths : open(reference);
      if (typeof paths === 'string' || typeof referrers === 'string') {
        problems.push(`The claim on ${claim.resource} ignores the references of ${kind}: ${referrers}`);
        continue;
      }
      opened.push(referrers);
      index.add(kind, referrers, paths);
    }
  }
  return {
    index,
    isEmpty: opened.length === 0,
    problems,
    close() {
      index.close();
      for (const referrers of opened) referrers.close();
    },
  };
}

/** How a reference is to be read, or in one clause why it must not be. */
function referencePaths(reference: ClaimReference, exported: ExportView): ReferencePaths | string {
  if (!mayRefer(reference, exported)) return `it is not among the resources of the export ${quote(exported.name)}`;
  const { name: nameText, namespace: namespaceText } = reference.jsonPath;
  const name = parseReferencePath(nameText);
  if ('problem' in name) return name.problem;
  const namespace = namespaceText ? parseReferencePath(namespaceText) : undefined;
  if (namespace && 'problem' in namespace) return namespace.problem;
  return { name, namespace, isolation: exported.isolation };
}

/** Without isolation the consumer has opened itself to all that the provider asks for. */
const mayRefer = ({ group, resource }: GroupResource, { resources, isolation }: ExportView): boolean =>
  isolation === 'None' || resources.some((one) => one.group === group && one.resource === resource);
