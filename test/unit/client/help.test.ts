import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { commands } from '../../../src/client/commands.ts';
import { commandHelp } from '../../../src/client/help.ts';
import { withoutCalls } from './objects.ts';

/** Each help is in a fence of the reference, below the heading of its command. `make manifests` writes it. */
const reference = readFileSync(new URL('../../../docs/reference/commands.md', import.meta.url), 'utf8');
const golden = (heading: string): string => {
  const [, text] = new RegExp(`^## ${heading}\n\n\`\`\`text\n([^\`]*)\`\`\`$`, 'm').exec(reference) ?? [];
  assert.ok(text, `the reference has no help below ${heading}`);
  return text;
};

describe('the help of the client', () => {
  const run = withoutCalls();
  const help = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(...argv);
    assert.deepEqual([code, stderr], [0, '']);
    return stdout;
  };
  const ofProgram = golden('All commands, and common flags');
  const commonFlags = /^Common flags:\n( .*\n)*/m.exec(ofProgram)?.[0] ?? '';

  it('is that of the reference', async () => {
    for (const argv of [['help'], ['--help'], ['-h'], ['help', '--help']])
      assert.equal(await help(...argv), ofProgram, argv.join(' '));
  });

  for (const { name } of commands) {
    it(`is that of the reference for ${name}`, async () => {
      const words = name.split(' ');
      for (const argv of [
        [...words, '--help'],
        [...words, '-h'],
        ['help', ...words],
        ['-n', 'a', 'help', ...words],
      ])
        assert.equal(await help(...argv), `${golden(name)}\n${commonFlags}`, argv.join(' '));
    });
  }

  it('of the first word of commands lists these', async () => {
    for (const argv of [
      ['help', 'audit'],
      ['audit', '--help'],
    ]) {
      const [, usage] = /^Usage:\n((?: .*\n)*)/m.exec(await help(...argv)) ?? [];
      assert.match(usage ?? '', /^ {2}drawbridge audit verify .*\n {2}drawbridge audit report .*\n$/);
      const [, listed] = /^Commands:\n((?: .*\n)*)/m.exec(await help(...argv)) ?? [];
      assert.match(listed ?? '', /^ {2}audit verify .*\n {2}audit report .*\n$/);
    }
  });

  it('of a command that does not exist names the nearest', async () => {
    for (const argv of [
      ['help', 'lsit'],
      ['lsit', '--help'],
    ]) {
      const { code, stderr } = await run(...argv);
      assert.deepEqual([code, stderr], [2, 'drawbridge: unknown command "lsit"; did you mean list?\n']);
    }
  });

  it('fits a terminal of 80 columns', () => {
    // A command line that the user types is never broken.
    const isLong = (line: string): boolean => line.length > 80 && !/^ {2}drawbridge /.test(line);
    assert.deepEqual([ofProgram, ...commands.map(({ name }) => golden(name))].join('').split('\n').filter(isLong), []);
  });

  it('keeps a word that is longer than a line whole', () => {
    const word = `https://example.com/${'a'.repeat(100)}`;
    const help = commandHelp({ name: 'x', summary: `See ${word} and more` }, 'drawbridge');
    assert.deepEqual(help.split('\n').slice(0, 4), ['See', word, 'and more.', '']);
  });
});
