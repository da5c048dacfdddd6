import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { shellWord } from '../../../src/kit/shell-word.ts';
import { callsIn, sampledCommands } from '../../support/access-commands.ts';
import { runs } from '../../support/runs.ts';

describe('a shell word', () => {
  const piece = fc.constantFrom(...'a "\'\\$`();*!~{#é', '=ls', '%self');
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

describe('an access command', () => {
  // test/unit/access/policy/access-command.test.ts does the same in sh and bash.
  for (const shell of ['zsh', 'fish']) {
    it(`is one call of kubectl in ${shell}, with each value of the pod as it is`, () => {
      const samples = sampledCommands(runs(30_000, 3000));
      const calls = callsIn(
        shell,
        samples.map(({ text }) => text),
      );
      for (const [index, { args, text }] of samples.entries()) assert.deepEqual(calls[index], args, text);
    }).timeout(120_000);
  }
});
