// Runs the test files below a folder, or the named files, in several processes at once: `main.ts test/integration`.
// DRAWBRIDGE_TEST_PROCESSES sets their number (default 4). Adds the totals that mocha wrote into the folder DRAWBRIDGE_TEST_TOTALS.
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { partOfPorts } from '../../sandbox/ports.ts';
import { FilesByGroup } from './files-by-group.ts';
import knownSeconds from './seconds.json' with { type: 'json' };
import { type FileResult, progressLine, Tally } from './tally.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Tests mostly wait, so four keep two processors busy. One process on a running plane, because several would interfere. */
const processes = process.env['DRAWBRIDGE_SANDBOX'] ? 1 : Number(process.env['DRAWBRIDGE_TEST_PROCESSES'] ?? 4);
/** How long a file may take before it counts as hanging. */
const fileLimitMs = 15 * 60_000;
const killAfterMs = 10_000;

const filesBelow = (path: string): string[] =>
  statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.test.ts'))
        .map((name) => join(path, name))
    : [path];

const files = process.argv.slice(2).flatMap(filesBelow);
if (files.length === 0) throw new Error('no test files; usage: main.ts FOLDER|FILE...');
process.env['DRAWBRIDGE_SEED'] ??= '1';
console.log(`${files.length} files in ${processes} processes, DRAWBRIDGE_SEED=${process.env['DRAWBRIDGE_SEED']}`);

/** The name of a file in lines of progress: its path below `test/`. */
const nameOf = (path: string): string => relative(join(root, 'test'), path);
/** Default duration of a file on a quiet machine, if `seconds.json` has none. */
const usualSeconds = 8;
const secondsOf = (path: string): number =>
  (knownSeconds as Readonly<Record<string, number>>)[nameOf(path)] ?? usualSeconds;
/** Folders that take less than this in total share a process, and so its planes. */
const smallSeconds = 60;
const isSmall = (folder: string): boolean =>
  files.filter((path) => dirname(path) === folder).reduce((sum, path) => sum + secondsOf(path), 0) < smallSeconds;
const groupOf = (path: string): string => (isSmall(dirname(path)) ? 'small folders' : dirname(path));
const queue = new FilesByGroup(files.map((path) => ({ path, group: groupOf(path), seconds: secondsOf(path) })));
const tally = new Tally();
const children = new Set<ChildProcess>();
const running = new Map<ChildProcess, string>();

const died = (file: string, output: string, ms: number): FileResult => ({
  file,
  passed: 0,
  failures: [{ title: 'the process of these tests died', message: output.slice(-400) }],
  ms,
  tests: [],
});

function report(result: FileResult, output: string): void {
  tally.add(result);
  const shown = { ...result, file: nameOf(result.file) };
  console.log(progressLine(shown, { tally, files: files.length, running: [...running.values()] }));
  if (output.trim() !== '') console.log(output.trimEnd());
}

/** Runs the files of one group in a process of their own, which uses these ports, until none is left or the process dies. */
function runGroup(group: string, ports: string): Promise<void> {
  const env = { ...process.env, DRAWBRIDGE_PORTS: ports };
  const child = fork(join(root, 'test/run/worker.ts'), { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], env });
  children.add(child);
  let output = '';
  let file: string | undefined;
  let startedMs = 0;
  let limit: NodeJS.Timeout | undefined;
  const collect = (chunk: Buffer): void => {
    output += chunk;
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const end = (result: FileResult): void => {
    clearTimeout(limit);
    running.delete(child);
    report(result, output);
    [file, output] = [undefined, ''];
  };
  const next = (): void => {
    file = queue.next(group);
    startedMs = performance.now();
    limit = setTimeout(stop, file === undefined ? killAfterMs : fileLimitMs);
    if (file !== undefined) running.set(child, nameOf(file));
    child.send({ file });
  };
  const stop = (): void => {
    output += `\nit took longer than ${fileLimitMs / 1000} s\n`;
    child.kill('SIGTERM');
    limit = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  };
  child.on('message', (result: FileResult) => {
    end(result);
    next();
  });
  next();
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      clearTimeout(limit);
      children.delete(child);
      if (file !== undefined) {
        output += `\nthe process of these tests ended with ${signal ?? `exit code ${code}`}\n`;
        end(died(file, output, performance.now() - startedMs));
      } else if (code !== 0) {
        end(died(`${group} (end)`, output, performance.now() - startedMs));
      }
      queue.leave(group);
      resolve();
    });
  });
}

/** Processes that run at the same time must not choose the same ports. */
async function lane(index: number): Promise<void> {
  const ports = partOfPorts(index, processes);
  for (let group = queue.join(); group !== undefined; group = queue.join()) await runGroup(group, ports);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const child of children) child.kill('SIGTERM');
    console.log(`ended by ${signal}; until then ${tally.passed} passed, ${tally.failed} failed`);
    process.exit(130);
  });
}

await Promise.all(Array.from({ length: processes }, (_, index) => lane(index)));
const totals = process.env['DRAWBRIDGE_TEST_TOTALS'];
if (totals && existsSync(totals)) {
  for (const name of readdirSync(totals)) tally.add(JSON.parse(readFileSync(join(totals, name), 'utf8')) as FileResult);
}
console.log(tally.summary().join('\n'));
process.exitCode = tally.failed === 0 ? 0 : 1;
