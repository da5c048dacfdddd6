/** A violated invariant. */
export class InvariantViolation extends Error {}

export function assertInvariant(holds: boolean, invariant: string, detail: () => string): asserts holds {
  if (!holds) throw new InvariantViolation(`${invariant}: ${detail()}`);
}
