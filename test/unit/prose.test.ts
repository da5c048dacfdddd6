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

describe('prose', () => {
  it('names who acts', () => {
    assert.deepEqual(
      files.flatMap((file) => linesOf(file, hidingWords)),
      [],
    );
  });
});
