export interface TestTime {
  readonly title: string;
  readonly ms: number;
}

/** What running one test file came to. */
export interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly ms: number;
  readonly tests: readonly TestTime[];
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** Adds up the results of a run. */
export class Tally {
  readonly #results: FileResult[] = [];

  add(result: FileResult): void {
    this.#results.push(result);
  }

  get files(): number {
    return this.#results.length;
  }

  get passed(): number {
    return this.#results.reduce((sum, { passed }) => sum + passed, 0);
  }

  get failed(): number {
    return this.#results.reduce((sum, { failed }) => sum + failed, 0);
  }

  /** The lines that end a run; the total comes last. */
  summary(): string[] {
    const tests = this.#results.flatMap(({ file, tests }) =>
      tests.map(({ title, ms }) => ({ title: `${file}: ${title}`, ms })),
    );
    const failing = this.#results.filter(({ failed }) => failed > 0).map(({ file }) => `  ${file}`);
    return [
      ...slowest(
        'files',
        this.#results.map(({ file, ms }) => ({ title: file, ms })),
      ),
      ...slowest('tests', tests),
      ...(failing.length > 0 ? ['Files with failures:', ...failing] : []),
      `${this.passed} passed, ${this.failed} failed`,
    ];
  }
}

/** The ten that took longest, under a headline. */
export function slowest(what: string, times: readonly TestTime[]): string[] {
  if (times.length === 0) return [];
  const ten = times.toSorted((a, b) => b.ms - a.ms).slice(0, 10);
  return [`The slowest ${what}:`, ...ten.map(({ title, ms }) => `${seconds(ms).padStart(9)}  ${title}`)];
}

/** One line of progress: what has ended, how far the run is, and what still runs. */
export function progressLine(
  result: FileResult,
  { tally, files, running }: { tally: Tally; files: number; running: readonly string[] },
): string {
  const verdict =
    result.failed > 0 ? `${result.failed} FAILED of ${result.passed + result.failed}` : `${result.passed} passed`;
  const now = running.length > 0 ? `; now ${running.join(', ')}` : '';
  return `[${tally.files}/${files} files, ${tally.passed} passed] ${result.file}: ${verdict}, ${seconds(result.ms)}${now}`;
}
