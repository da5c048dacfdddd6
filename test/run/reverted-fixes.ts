// Do the tests still find the defects of the past? For each past fix, undoes it in the source of this tree, and runs
// the unit tests and, if these pass, the integration tests and then the long tests of the area. Start it with
// `node --import tsx`:
//
//   test/run/reverted-fixes.ts              the first 30 fixes that can be undone (COUNT=N; SELECT=1 only lists them)
//   test/run/reverted-fixes.ts COMMIT...    these commits (LIST=FILE: those of a file, one a line)
//
// Most fixes have unit tests. UNIT=0 leaves these out, to see what the integration tests find by themselves.
// dist/reverted-fixes.tsv has the results. A later run continues it; delete it after a change of the tests.
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import type { FileResult } from './tally.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const withUnit = process.env['UNIT'] !== '0';
const results = join(root, `dist/reverted-fixes${withUnit ? '' : '-by-integration'}.tsv`);
const count = Number(process.env['COUNT'] ?? 30);

// A fix is a commit of at most 80 lines of source that also changes tests, and whose subject says how things behave
// now, with a word such as `not` or `after`. Subjects about words, and changes of only text, do not count.
const aboutBehavior =
  /\b(fix|mend|correct|wrong|no|not|nothing|never|only|even|also|again|until|while|without|once|at most|too|still|where|whole|out of|beyond|longer|late|lost|whatever|retry|bound|stays?|keeps?|ignores?|drops?|hides?|splits?|rejects?|ends?|waits?|abort|after|whose|as)\b/i;
const aboutWords =
  /\b(says?|tell|told|names?|words?|texts?|describe[sd]?|comments?|docs|remed(y|ies)|advises?|readers|called|messages)\b/i;
const largestFix = 80;

/** Tests of documents and of the form of the sources, which would also fail for a reason other than behavior. */
const testsOfForm = ['docs', 'image', 'lint', 'prose', 'repository'].map((name) => `test/unit/${name}.test.ts`);

/** Integration tests of folders of `src` that have no folder of their own. Others are of access. */
const otherAreas: Readonly<Record<string, readonly string[]>> = { admission: ['access', 'inventory'], cli: ['client'] };

/** Without its fix, a loop may never end. */
const limits = { maxBuffer: 2 ** 30, timeout: 20 * 60_000, killSignal: 'SIGKILL' } as const;

const call = (cwd: string, command: string, args: readonly string[], env = {}): SpawnSyncReturns<string> =>
  spawnSync(command, args, { ...limits, cwd, encoding: 'utf8', env: { ...process.env, ...env } });

function git(...args: readonly string[]): string {
  const { status, stdout, stderr } = call(root, 'git', args);
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}
const contents = (commit: string, file: string): string => git('cat-file', 'blob', `${commit}:${file}`);
const subjectOf = (commit: string): string => git('log', '-1', '--format=%s', commit);

/** Without comments and types, whose later changes would conflict. */
const codeOf = (source: string): string =>
  transformSync(source, {
    loader: 'ts',
    target: 'esnext',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  }).code;
const withoutText = (code: string): string => code.replace(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, '""');

/** The past fixes of this branch. Their order, by the hash of the hash, has no relation to what they mend. */
function pastFixes(): string[] {
  const log = git('log', '--no-merges', '--format=%x00%H %s', '--numstat', '--', 'src', 'test').split('\0').slice(1);
  const hashed = (commit: string): string => createHash('sha256').update(commit).digest('hex');
  return log
    .filter((entry) => {
      const [title = '', ...files] = entry.split('\n');
      const subject = title.replace(/^\S+ (?:.*?: )?/, '');
      const source = files.filter((line) => line.includes('\tsrc/')).map((line) => line.split('\t').map(Number));
      const lines = source.reduce((sum, [added = 0, deleted = 0]) => sum + added + deleted, 0);
      const tested = files.some((line) => /\ttest\/(unit|integration|faults)\//.test(line));
      return tested && lines > 0 && lines <= largestFix && aboutBehavior.test(subject) && !aboutWords.test(subject);
    })
    .map((entry) => entry.slice(0, 40))
    .toSorted((a, b) => (hashed(a) < hashed(b) ? -1 : 1));
}

/** The tree under test without one commit: the new code by file, or why there is none. */
function undone(commit: string, tree: string): ReadonlyMap<string, string> | string {
  const merged = new Map<string, string>();
  const scratch = mkdtempSync(join(tmpdir(), 'drawbridge-merge-'));
  let changed = false;
  try {
    for (const line of git('diff', '--no-renames', '--name-status', `${commit}^`, commit, '--', 'src/*.ts').split(
      '\n',
    )) {
      const [kind = '', file = ''] = line.split('\t');
      if (kind !== 'M') return 'adds or deletes a file';
      const now = nameIn(tree, commit, file);
      if (now === undefined) return `${file} is gone`;
      const codes = [contents(tree, now), contents(commit, file), contents(`${commit}^`, file)].map(codeOf);
      const [ours = '', base = '', theirs = ''] = codes;
      const paths = ['ours', 'base', 'theirs'].map((name) => join(scratch, name));
      for (const [index, path] of paths.entries()) writeFileSync(path, codes[index] ?? '');
      const { status, stdout } = call(scratch, 'git', ['merge-file', '-p', ...paths]);
      if (status !== 0) return `conflict in ${now}`;
      changed ||= withoutText(base) !== withoutText(theirs) && withoutText(stdout) !== withoutText(ours);
      if (stdout !== ours) merged.set(now, stdout);
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
  return changed ? merged : 'changes only text, or nothing any more';
}

/** The present path of a file that may have moved since. */
function nameIn(tree: string, commit: string, file: string): string | undefined {
  if (call(root, 'git', ['cat-file', '-e', `${tree}:${file}`]).status === 0) return file;
  const moves = git('diff', '-M40%', '-l5000', '--diff-filter=R', '--name-status', commit, tree, '--', 'src').split(
    '\n',
  );
  return moves.map((line) => line.split('\t')).find(([, from]) => from === file)?.[2];
}

/** A checkout of the tree under test, with the packages of this one. */
class Checkout {
  readonly #path = join(root, 'dist/reverted-fixes');

  constructor(tree: string) {
    // An interrupted run leaves one behind.
    if (existsSync(this.#path)) this.remove();
    git('worktree', 'add', '--detach', '--force', this.#path, tree);
    symlinkSync(join(root, 'node_modules'), join(this.#path, 'node_modules'));
    for (const file of testsOfForm) rmSync(join(this.#path, file), { force: true });
  }

  remove(): void {
    git('worktree', 'remove', '--force', this.#path);
  }

  /** What finds that this code is missing. Also if it does not compile, which proves nothing. */
  verdict(code: ReadonlyMap<string, string>): string {
    this.#run('git', ['restore', 'src']);
    for (const [file, text] of code) writeFileSync(join(this.#path, file), text);
    if (!this.#builds([...code.keys()])) return 'does not apply: does not compile';
    const unit = withUnit ? this.#failedUnitTest() : undefined;
    if (unit !== undefined) return `caught by unit: ${unit}`;
    const areas = new Set([...code.keys()].flatMap(areasOf));
    const folders = [...areas].flatMap((area) => [`test/integration/${area}`, `test/faults/${area}`]);
    for (const folder of folders.filter((one) => existsSync(join(root, one)))) {
      const file = this.#failedFile(folder);
      if (file === undefined) continue;
      this.#run('git', ['restore', 'src']);
      if (this.#builds([]) && this.#integration(file).status === 0) return `caught by ${file}`;
      throw new Error(`${file} fails also without a change of the source`);
    }
    const ran = [...(withUnit ? ['unit'] : []), ...folders];
    return `NOT caught (${ran.join(', ')})`;
  }

  /** Without types, only the linter sees that a name is gone. */
  #builds(files: readonly string[]): boolean {
    const lint = ['lint', '--vcs-enabled=false', '--only=correctness/noUndeclaredVariables', ...files];
    return (
      (files.length === 0 || this.#run('node_modules/.bin/biome', lint).status === 0) &&
      this.#run('npm', ['run', '--silent', 'build']).status === 0 &&
      this.#run(process.execPath, ['--import', 'tsx', 'test/run/bundle.ts']).status === 0
    );
  }

  #failedUnitTest(): string | undefined {
    const totals = join(this.#path, 'dist/totals');
    for (const bundle of readdirSync(join(this.#path, 'dist/test')).filter((name) => /^unit-.*\.js$/.test(name))) {
      rmSync(totals, { recursive: true, force: true });
      const options = ['--config', 'test/mocharc.bundle.json', '--reporter', 'dist/test/totals-reporter.js'];
      const args = ['node_modules/mocha/bin/mocha.js', ...options, `dist/test/${bundle}`];
      const { status } = this.#run(process.execPath, args, { DRAWBRIDGE_TEST_TOTALS: totals });
      if (status === 0) continue;
      const [written] = existsSync(totals) ? readdirSync(totals) : [];
      if (written === undefined) return `${bundle} did not run`;
      const { failures } = JSON.parse(readFileSync(join(totals, written), 'utf8')) as FileResult;
      return failures[0]?.title ?? `${bundle} did not end`;
    }
    return undefined;
  }

  /** Of a folder, a file that fails twice. */
  #failedFile(folder: string): string | undefined {
    const { status, stdout } = this.#integration(folder);
    if (status === 0) return undefined;
    const failed = [...stdout.matchAll(/^\[.*\] (\S+): \d+ FAILED of/gm)].map(([, file]) => `test/${file}`);
    return failed.find((file) => existsSync(join(this.#path, file)) && this.#integration(file).status !== 0);
  }

  #integration = (path: string): SpawnSyncReturns<string> =>
    this.#run(process.execPath, ['--import', 'tsx', 'test/run/main.ts', path], { DRAWBRIDGE_TEST_TOTALS: '' });

  #run = (command: string, args: readonly string[], env = {}): SpawnSyncReturns<string> =>
    call(this.#path, command, args, env);
}

/** `src/api/binding/kinds.ts` → `binding`; only areas that have integration tests. */
function areasOf(file: string): readonly string[] {
  const areas = readdirSync(join(root, 'test/integration'));
  const [, ...folders] = file.replace(/\.ts$/, '').split('/');
  const own = folders.find((name) => areas.includes(name));
  return own === undefined ? (otherAreas[folders[0] ?? ''] ?? ['access']) : [own];
}

const named = process.env['LIST']
  ? readFileSync(process.env['LIST'], 'utf8')
      .split('\n')
      .flatMap((line) => line.split(/\s/)[0] || [])
  : process.argv.slice(2);
const commits = named.length > 0 ? named.map((name) => git('rev-parse', `${name}^{commit}`)) : pastFixes();
const wanted = named.length > 0 ? named.length : count;
// Includes what is not committed yet, but no new files.
const tree = git('rev-parse', git('stash', 'create') || 'HEAD');
const known = new Map(
  (existsSync(results) ? readFileSync(results, 'utf8') : '').split('\n').map((line) => {
    const [commit = '', verdict = ''] = line.split('\t');
    return [commit, verdict];
  }),
);

let checkout: Checkout | undefined;
function verdictOn(commit: string): string {
  const code = undone(commit, tree);
  if (typeof code === 'string') return `does not apply: ${code}`;
  if (process.env['SELECT']) return 'applies';
  if (checkout === undefined) {
    checkout = new Checkout(tree);
    const broken = checkout.verdict(new Map());
    if (!broken.startsWith('NOT caught')) throw new Error(`without any change, a test fails: ${broken}`);
  }
  return checkout.verdict(code);
}

const verdicts: string[] = [];
const applied = (): number => verdicts.filter((verdict) => !verdict.startsWith('does not apply')).length;
mkdirSync(join(root, 'dist'), { recursive: true });
try {
  for (const commit of commits) {
    if (applied() === wanted) break;
    const verdict = known.get(commit) ?? verdictOn(commit);
    const subject = subjectOf(commit);
    if (!known.has(commit) && !process.env['SELECT']) appendFileSync(results, `${commit}\t${verdict}\t${subject}\n`);
    console.log(`${commit.slice(0, 8)}  ${verdict}  (${subject})`);
    verdicts.push(verdict);
  }
} finally {
  checkout?.remove();
}
const caught = verdicts.filter((verdict) => verdict.startsWith('caught')).length;
console.log(
  `${caught} of ${applied()} fixes are caught when they are undone; ${commits.length} commits to choose from`,
);
process.exitCode = caught === applied() ? 0 : 1;
