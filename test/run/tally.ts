export interface TestTime {
  readonly title: string;
  readonly ms: number;
}

export interface TestFailure {
  readonly title: string;
  readonly message: string;
}

/** The result of one test file. */
export interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failures: readonly TestFailure[];
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
    return this.#results.reduce((sum, { failures }) => sum + failures.length, 0);
  }

  /** The last lines of a run; the total is the last one. */
  summary(): string[] {
    const tests = this.#results.flatMap(({ file, tests }) =>
      tests.map(({ title, ms }) => ({ title: `${file}: ${title}`, ms })),
    );
    const failed = this.#results.flatMap(({ file, failures }) =>
      failures.map(({ title, message }) => `  ${file}: ${title}\n${shortened(message)}`),
    );
    return [
      ...slowest(
        'files',
        this.#results.map(({ file, ms }) => ({ title: file, ms })),
      ),
      ...slowest('tests', tests),
      ...(failed.length > 0 ? ['What failed:', ...failed] : []),
      `${this.passed} passed, ${this.failed} failed`,
    ];
  }
}

/** How much of a failure the end of a run repeats, because a log may show only its last lines. */
const shownLength = 600;

const shortened = (message: string): string =>
  message
    .slice(0, shownLength)
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => `      ${line}`)
    .join('\n');

/** The ten slowest, under a headline. */
export function slowest(what: string, times: readonly TestTime[]): string[] {
  if (times.length === 0) return [];
  const ten = times.toSorted((a, b) => b.ms - a.ms).slice(0, 10);
  return [`The slowest ${what}:`, ...ten.map(({ title, ms }) => `${seconds(ms).padStart(9)}  ${title}`)];
}

/** One line of progress: the finished file, the progress of the run, and the running files. */
export function progressLine(
  result: FileResult,
  { tally, files, running }: { tally: Tally; files: number; running: readonly string[] },
): string {
  const failed = result.failures.length;
  const verdict = failed > 0 ? `${failed} FAILED of ${result.passed + failed}` : `${result.passed} passed`;
  const now = running.length > 0 ? `; now ${running.join(', ')}` : '';
  return `[${tally.files}/${files} files, ${tally.passed} passed] ${result.file}: ${verdict}, ${seconds(result.ms)}${now}`;
}
