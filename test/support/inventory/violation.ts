/** A violated invariant. */
export class Violation extends Error {}

export function hold(isSo: boolean, invariant: string, detail: () => string): asserts isSo {
  if (!isSo) throw new Violation(`${invariant}: ${detail()}`);
}
