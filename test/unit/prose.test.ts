import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Files that keep their original words, and this file, which lists the words. */
const exempt = /^(CHANGELOG\.md|LICENSE|package-lock\.json|docs\/adr\/0|test\/unit\/prose\.test\.ts)/;
const texts = /\.(ts|md|yaml|yml|json|txt|tpl|py|sh)$|(^|\/)(Makefile|Dockerfile)$/;

const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => texts.test(file) && !exempt.test(file));

const read = (file: string): string => readFileSync(`${root}/${file}`, 'utf8');

/** `file:line: the line`, for each line of `file` that matches. */
const linesOf = (file: string, pattern: RegExp): string[] =>
  read(file)
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []));

/** They hide who acts: name the server, the requester, an administrator, another client. The name of a user may be quoted. */
const hidingWords = /(?<!['"])\b(nobody|somebody|whoever)\b(?!['"])/i;

/** A substring or a pattern of a message: programs read codes, reasons, and fields. */
const readsMessage =
  /\b(message|why|warning|denial)\??\.(match(All)?|startsWith|endsWith|includes|replace(All)?|split|(lastI|i)ndexOf|search)\(|\.(test|exec)\([^)]*\b(message|why|warning|denial)\b|\bdescribe\(\w+\)\.(match|startsWith|endsWith|includes|replace|split)/;

/** What they read is not ours, or has a documented format. */
const readers: Readonly<Record<string, string>> = {
  'src/access/policies/probe.ts': 'the API server, about admission policies',
  'src/access/policy/refusal-text.ts': 'the API server, about a rejected Pod or Role',
  'src/access/policy/warnings.ts': 'the format of warnings, which have no fields',
  'src/access/template/grant-dry-runs.ts': 'the API server, about a namespace that ends',
  'src/cli/audit.ts': 'Node, about options',
  'src/client/doctor-checks.ts': 'the API server, about webhooks',
  'src/client/problem.ts': 'the API server, about permissions and policies',
  'src/flags.ts': 'Node, about options',
  'src/kube/errors.ts': 'the API server; ApiError adds the HTTP status itself',
  'src/kube/kubeconfig.ts': 'the YAML parser',
  'src/observe/stderr-writer.ts': 'Node, about a pipe',
};

describe('prose', () => {
  it('names who acts', () => {
    assert.deepEqual(
      files.flatMap((file) => linesOf(file, hidingWords)),
      [],
    );
  });

  it('is not read by programs', () => {
    const found = files.filter((file) => file.startsWith('src/')).flatMap((file) => linesOf(file, readsMessage));
    const isAllowed = (line: string): boolean => Object.hasOwn(readers, line.split(':')[0] ?? '');
    assert.deepEqual(
      found.filter((line) => !isAllowed(line)),
      [],
    );
    const unused = Object.keys(readers).filter((file) => !found.some((line) => line.startsWith(`${file}:`)));
    assert.deepEqual(unused, []);
  });
});
