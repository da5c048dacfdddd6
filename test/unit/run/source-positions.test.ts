import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { build } from 'esbuild';
import { withSources } from '../../run/source-positions.ts';

describe('positions in a stack trace', () => {
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'source-positions-'));
    writeFileSync(
      join(folder, 'source.ts'),
      'type Unused = string;\n\nexport const fail = (): never => {\n  throw new Error("a bug");\n};\n',
    );
    await build({
      entryPoints: [join(folder, 'source.ts')],
      outfile: join(folder, 'bundle.js'),
      sourcemap: 'external',
      format: 'esm',
      logLevel: 'warning',
    });
  });
  after(() => rmSync(folder, { recursive: true }));

  it('name the sources of a bundle', async () => {
    const { fail } = (await import(join(folder, 'bundle.js'))) as { fail: () => never };
    let stack = '';
    try {
      fail();
    } catch (error) {
      stack = (error as Error).stack ?? '';
    }
    const source = relative('', join(folder, 'source.ts'));
    assert.match(withSources(stack), new RegExp(`^Error: a bug\\n    at fail \\(${source}:4:9\\)`));
  });

  for (const stack of [
    'Error: a bug\n    at node:internal/modules/run_main:117:5',
    'Error: a bug\n    at fail (/none/bundle.js:4:9)',
    'Error: a bug',
  ]) {
    it(`stay as they are without a source map: ${JSON.stringify(stack)}`, () =>
      assert.equal(withSources(stack), stack));
  }
});
