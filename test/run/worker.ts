// A process of the test run. Runs the files that its parent names, one after the other, and reports the result of each. Shared
// resources such as planes end when the parent names no more files, and at the latest with this process.
import Mocha from 'mocha';
import options from '../mocharc.integration.json' with { type: 'json' };
import { mochaHooks } from '../support/root-hooks.ts';
import type { FileResult, TestTime } from './tally.ts';

const { timeout, forbidOnly, forbidPending } = options;

async function run(file: string): Promise<FileResult> {
  const startedMs = performance.now();
  const mocha = new Mocha({
    timeout,
    forbidOnly,
    forbidPending,
    reporter: class {} as unknown as Mocha.ReporterConstructor,
  });
  mocha.addFile(file);
  await mocha.loadFilesAsync();
  const tests: TestTime[] = [];
  const failures: Mocha.Test[] = [];
  let passed = 0;
  await new Promise<void>((resolve) => {
    const runner = mocha.run(() => {
      // Otherwise a failure in a later file would count for this one.
      runner.dispose();
      resolve();
    });
    runner.on('pass', (test) => {
      passed += 1;
      tests.push({ title: test.fullTitle(), ms: test.duration ?? 0 });
    });
    runner.on('fail', (test, error) => {
      test.err = error;
      failures.push(test);
    });
  });
  if (failures.length > 0) Mocha.reporters.Base.list(failures);
  if (passed + failures.length === 0) throw new Error(`${file} has no tests`);
  const reported = failures.map((test) => ({ title: test.fullTitle(), message: messageOf(test.err) }));
  return { file, passed, failures: reported, ms: performance.now() - startedMs, tests };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const failedToRun = (file: string, error: unknown): FileResult => {
  console.error(error);
  return { file, passed: 0, failures: [{ title: 'did not run', message: messageOf(error) }], ms: 0, tests: [] };
};

async function end(): Promise<never> {
  await mochaHooks.afterAll();
  process.exit();
}

process.on('message', ({ file }: { file?: string }) => {
  if (file === undefined) return void end();
  void run(file)
    .catch((error: unknown) => failedToRun(file, error))
    .then((result) => process.send?.(result));
});
// Exit handlers end the shared resources, so a signal must not kill this process.
for (const event of ['SIGINT', 'SIGTERM', 'disconnect'] as const) process.on(event, () => process.exit(1));
