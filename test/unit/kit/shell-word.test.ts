import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { shellWord } from '../../../src/kit/shell-word.ts';
import { runs } from '../../support/runs.ts';

describe('a shell word', () => {
  for (const [text, word] of [
    ['a.b-c', 'a.b-c'],
    ['', "''"],
    ['a b', "'a b'"],
    ["it's", "'it'\\''s'"],
    ["\\' ; id #", "\\\\\\'' ; id #'"],
  ] as const) {
    it(`of ${JSON.stringify(text)} is ${word}`, () => assert.equal(shellWord(text), word));
  }

  for (const shell of ['sh', 'bash', 'zsh', 'fish']) {
    it(`is exactly its text in ${shell}, if that is installed`, function () {
      const piece = fc.constantFrom('a', ' ', '"', "'", '\\', '$', '`', '(', ')', ';', '*', '!', '~', '{', '#', 'é');
      const texts = fc.sample(
        fc.array(piece, { maxLength: 8 }).map((parts) => parts.join('')),
        { seed: 5, numRuns: runs(2000) },
      );
      const script = texts.map((text) => `printf '<%s>\\n' ${shellWord(text)}`).join('\n');
      const { error, stdout, stderr } = spawnSync(shell, ['-c', script], { encoding: 'utf8', timeout: 60_000 });
      if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return this.skip();
      assert.equal(stderr, '');
      assert.deepEqual(
        stdout.trimEnd().split('\n'),
        texts.map((text) => `<${text}>`),
      );
    }).timeout(60_000);
  }
});
