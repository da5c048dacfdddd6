import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Mocha from 'mocha';
import { type FileResult, slowest, type TestFailure, type TestTime } from './tally.ts';

/** Prints dots and the slowest tests, and writes the totals into the folder DRAWBRIDGE_TEST_TOTALS for `main.ts`. */
// biome-ignore lint/style/noDefaultExport: mocha takes the default export of a reporter
export default class TotalsReporter extends Mocha.reporters.Dot {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const folder = process.env['DRAWBRIDGE_TEST_TOTALS'];
    const tests: TestTime[] = [];
    const failures: TestFailure[] = [];
    runner.on('pass', (test) => void tests.push({ title: test.fullTitle(), ms: test.duration ?? 0 }));
    runner.on('fail', (test, error: Error) => void failures.push({ title: test.fullTitle(), message: error.message }));
    runner.once('end', () => {
      process.stdout.write(`${slowest('tests', tests).join('\n')}\n\n`);
      if (!folder) return;
      const { passes: passed, duration: ms = 0 } = this.stats;
      const file = process.argv.find((argument) => argument.startsWith('test/unit/')) ?? 'unit tests';
      const result: FileResult = { file, passed, failures, ms, tests };
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify(result));
    });
  }
}
