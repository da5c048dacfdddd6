import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { shellWord } from '../../../src/kit/shell-word.ts';

describe('a shell word', () => {
  const piece = fc.constantFrom(
    'a',
    ' ',
    '"',
    "'",
    '\\',
    '$',
    '`',
    '(',
    ')',
    ';',
    '*',
    '!',
    '~',
    '{',
    '#',
    'é',
    '=ls',
    '%self',
  );
  const texts = fc.sample(
    fc.array(piece, { maxLength: 8 }).map((parts) => parts.join('')),
    { seed: 5, numRuns: 2000 },
  );

  for (const shell of ['sh', 'bash', 'zsh', 'fish']) {
    it(`is exactly its text in ${shell}`, () => {
      const script = texts.map((text) => `printf '<%s>\\n' ${shellWord(text)}`).join('\n');
      const { error, stdout, stderr } = spawnSync(shell, ['-c', script], { encoding: 'utf8', timeout: 60_000 });
      assert.equal(error, undefined);
      assert.equal(stderr, '');
      assert.deepEqual(
        stdout.trimEnd().split('\n'),
        texts.map((text) => `<${text}>`),
      );
    }).timeout(60_000);
  }
});
