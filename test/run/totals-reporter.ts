import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Mocha from 'mocha';
import { withSources } from './source-positions.ts';
import { type FileResult, slowest, type TestFailure, type TestTime } from './tally.ts';

/** Time for the process to end by itself after its last test, milliseconds. */
const OPEN_HANDLES_MS = 20_000;

/** A test that failed halfway may leave a server or a connection open, for which the run would otherwise wait forever. */
function endProcess(): void {
  process.stderr.write('the tests left something open, such as a server or a watch, so this process ends now\n');
  process.exit(1);
}

/** Prints dots and the slowest tests, and writes the totals into the folder DRAWBRIDGE_TEST_TOTALS for `main.ts`. */
// biome-ignore lint/style/noDefaultExport: mocha takes the default export of a reporter
export default class TotalsReporter extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const folder = process.env['DRAWBRIDGE_TEST_TOTALS'];
    const tests: TestTime[] = [];
    const failures: TestFailure[] = [];
    runner.on('pass', (test) => void tests.push({ title: test.fullTitle(), ms: test.duration ?? 0 }));
    runner.on('fail', (test, error: Error) => {
      failures.push({ title: test.fullTitle(), message: error.message });
      if (error.stack !== undefined) error.stack = withSources(error.stack);
    });
    runner.once('end', () => {
      setTimeout(endProcess, OPEN_HANDLES_MS).unref();
      process.stdout.write(`${slowest('tests', tests).join('\n')}\n\n`);
      if (!folder) return;
      const { passes: passed, duration: ms = 0 } = this.stats;
      const file = process.argv.find((argument) => argument.includes('test/unit')) ?? 'unit tests';
      const result: FileResult = { file, passed, failures, ms, tests };
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify(result));
    });
  }
}
