import type { PermissionClaim } from '../../api/binding/permission-claim.ts';
import { type CompiledSelector, compileSelector, formatSelector } from '../../kit/label-selector.ts';

/** An object as claims see it: in the consumer, or in the provider under the namespace of the consumer that it stands for. */
export interface Candidate {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** What the claims of one kind select. */
export interface ClaimSelector {
  /** What is wrong with the claims themselves, in sentences. The rest of them holds. */
  readonly problems: readonly string[];
  /** Nothing can ever match. */
  readonly isEmpty: boolean;
  /** The label selector that says all there is to say, in the form of a watch; undefined when it takes more than labels. */
  readonly watchSelector: string | undefined;
  /** In words, by which part of a claim the object is selected; undefined when by none. */
  why(candidate: Candidate): string | undefined;
}

interface Labels {
  readonly text: string;
  readonly matches: Extract<CompiledSelector, { matches: unknown }>['matches'];
}

/**
 * Each part of a claim selects by itself: labels, names, or being referred to. A label selector without requirements selects
 * everything; a claim without any part nothing. `references` is absent when no claim goes by them.
 */
export function claimSelector(
  claims: readonly PermissionClaim[],
  references?: { referrer(namespace: string, name: string): string | undefined },
): ClaimSelector {
  const problems: string[] = [];
  const labels: Labels[] = [];
  for (const { resource, selector } of claims) {
    if (selector.labelSelector === undefined) continue;
    const compiled = compileSelector(selector.labelSelector);
    const formatted = formatSelector(selector.labelSelector);
    if ('error' in compiled)
      problems.push(`The label selector of the claim on ${resource} selects nothing: ${compiled.error}`);
    else if ('text' in formatted) labels.push({ text: formatted.text, matches: compiled.matches });
  }
  const named = claims.flatMap(({ selector }) => selector.namedResources ?? []);
  const [first] = labels;
  const isOneOfLabels = first !== undefined && labels.length === 1 && named.length === 0 && !references;
  return {
    problems,
    isEmpty: labels.length === 0 && named.length === 0 && !references,
    watchSelector: isOneOfLabels && first.text !== '' ? first.text : undefined,
    why(candidate) {
      const byLabels = labels.find(({ matches }) => matches(candidate.labels));
      if (byLabels) return byLabels.text === '' ? 'the claim is on all of them' : `its labels match ${byLabels.text}`;
      const isNamed = named.some(
        ({ name, namespace }) => name === candidate.name && (!namespace || namespace === candidate.namespace),
      );
      if (isNamed) return 'the claim names it';
      const by = references?.referrer(candidate.namespace, candidate.name);
      return by === undefined ? undefined : `${by} refers to it`;
    },
  };
}
