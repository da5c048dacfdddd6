/** Registers each case as a test and starts all cases at once, for cases that mostly wait. */
export function sideBySide(cases: readonly (readonly [string, () => Promise<void>])[]): void {
  const outcomes = new Map<string, Promise<unknown>>();
  before(() => {
    for (const [title, run] of cases)
      outcomes.set(
        title,
        run().catch((error: unknown) => error),
      );
  });
  for (const [title] of cases) {
    it(title, async function () {
      this.timeout(150_000);
      const error = await outcomes.get(title);
      if (error) throw error;
    });
  }
}
