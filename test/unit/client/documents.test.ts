import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readCommandLine } from '../../../src/client/args.ts';
import { commands } from '../../../src/client/commands.ts';
import { commandLinesIn } from '../../support/command-lines.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md'),
  ...['docs', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && !name.startsWith('adr'))
      .map((name) => `${folder}/${name}`),
  ),
];
/** Commands that only the server's program has. */
const ofServer = ['serve', 'revoke-all'];

describe('the commands of the client in', () => {
  let count = 0;
  for (const page of pages) {
    const lines = commandLinesIn(readFileSync(join(root, page), 'utf8')).filter(
      ([first = '']) => !ofServer.includes(first),
    );
    if (lines.length === 0) continue;
    count += lines.length;

    it(`${page} are valid`, () => {
      const invalid = lines.flatMap((words) => {
        try {
          readCommandLine(words, commands);
          return [];
        } catch (error) {
          return [`${words.join(' ')}: ${error}`];
        }
      });
      assert.deepEqual(invalid, []);
    });
  }

  it('all pages are found', () => assert.ok(count > 50, `${count} commands`));
});
