import type { PermissionClaim } from '../../api/binding/permission-claim.ts';
import { type CompiledSelector, compileSelector, formatSelector } from '../../kit/label-selector.ts';

export interface Candidate {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface ClaimSelector {
  /** In sentences. Valid parts stay in effect. */
  readonly problems: readonly string[];
  readonly isEmpty: boolean;
  /** Set if one label selector is all that selects; otherwise all objects are watched. */
  readonly watchSelector: string | undefined;
  /** The part of a claim that selects the object, in words. */
  selectedBy(candidate: Candidate): string | undefined;
}

interface LabelPart {
  readonly text: string;
  readonly matches: Extract<CompiledSelector, { matches: unknown }>['matches'];
}

/**
 * Compiles the claims of one kind: labels, names, and references select independently. An empty
 * label selector selects all objects; a claim without any of the three, none.
 */
export function claimSelector(
  claims: readonly PermissionClaim[],
  references?: { referrer(namespace: string, name: string): string | undefined },
): ClaimSelector {
  const problems: string[] = [];
  const labels: LabelPart[] = [];
  for (const { resource, selector } of claims) {
    if (selector.labelSelector === undefined) continue;
    const compiled = compileSelector(selector.labelSelector);
    const formatted = formatSelector(selector.labelSelector);
    if ('error' in compiled)
      problems.push(
        `The label selector of the claim on ${resource} selects nothing: ${compiled.error}; ask the provider to correct it`,
      );
    else if ('text' in formatted) labels.push({ text: formatted.text, matches: compiled.matches });
  }
  const named = claims.flatMap(({ selector }) => selector.namedResources ?? []);
  const [first] = labels;
  const isSingleLabelSelector = first !== undefined && labels.length === 1 && named.length === 0 && !references;
  return {
    problems,
    isEmpty: labels.length === 0 && named.length === 0 && !references,
    watchSelector: isSingleLabelSelector && first.text !== '' ? first.text : undefined,
    selectedBy(candidate) {
      const byLabels = labels.find(({ matches }) => matches(candidate.labels));
      if (byLabels) return byLabels.text === '' ? 'the claim selects all objects' : `its labels match ${byLabels.text}`;
      const isNamed = named.some(
        ({ name, namespace }) => name === candidate.name && (!namespace || namespace === candidate.namespace),
      );
      if (isNamed) return 'the claim names it';
      const referrer = references?.referrer(candidate.namespace, candidate.name);
      return referrer === undefined ? undefined : `${referrer} refers to it`;
    },
  };
}
