import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pkg from '../../package.json' with { type: 'json' };
import { usage } from '../../src/flags.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const all = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[1] ?? '');
const filesIn = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .map((name) => `${folder}/${name}`);

const documents = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...['docs', 'examples', 'certs'].flatMap((folder) => filesIn(folder, '.md')),
].sort();
const operations = read('docs/operations.md');

describe('documents', () => {
  for (const document of documents) {
    const text = read(document);
    const code = [...all(text, /^ *```\w*\n([\s\S]*?)^ *```$/gm), ...all(text, /`([^`\n]+)`/g)];

    it(`${document} names files that exist`, () => {
      const named = code.flatMap((span) =>
        all(span, /(?:^|[\s(])((?:src|sandbox|test|charts|webhooks|certs|examples|docs|\.ci)\/[\w./-]*\w\/?)/g),
      );
      assert.deepEqual(
        named.filter((path) => !existsSync(join(root, path))),
        [],
      );
    });

    it(`${document} links to files and headings that exist`, () => {
      const broken = all(text, /\]\(([^)\s]+)\)/g).filter((link) => {
        if (/^https?:/.test(link)) return false;
        const [path = '', heading] = link.split('#');
        const target = path === '' ? document : join(dirname(document), path);
        return (
          !existsSync(join(root, target)) || (heading !== undefined && !headingsOf(read(target)).includes(heading))
        );
      });
      assert.deepEqual(broken, []);
    });

    it(`${document} names make targets that exist`, () => {
      const targets = all(read('Makefile'), /^([a-z-]+):/gm);
      const unknown = code
        .flatMap((span) => all(span, /^ *make ([a-z-]+)/gm))
        .filter((name) => !targets.includes(name));
      assert.deepEqual(unknown, []);
    });
  }

  it('list every flag and its variable', () => {
    const known = all(usage(), /(--[a-z-]+(?= [A-Z\w|]+ )|(?<=\[\$)[A-Z_]+)/g);
    assert.ok(known.length > 20);
    assert.deepEqual(missing(known), []);
  });

  it('list every metric', () => {
    const metrics = filesIn('src', '.ts').flatMap((file) =>
      all(read(file), /name: '((?:drawbridge|controller_runtime|workqueue|oz)_\w+)'/g),
    );
    assert.ok(metrics.length > 10);
    assert.deepEqual(missing(metrics), []);
  });

  it('list every code that a person may meet', () => {
    const codes = [...filesIn('src/access', '.ts'), ...filesIn('src/admission', '.ts')].flatMap((file) =>
      all(read(file), /(?:code: |refuse\(|invalid\()'([A-Z]\w+)'/g),
    );
    assert.ok(codes.length > 20);
    assert.deepEqual(missing(codes), []);
  });

  it('give a reason for every direct dependency', () => {
    const reasons = read('docs/adr/0006-dependencies.md');
    const names = Object.keys({ ...pkg.dependencies, ...pkg.devDependencies });
    assert.deepEqual(
      names.filter((name) => !reasons.includes(`\`${name}\``)),
      [],
    );
  });

  it('list every decision', () => {
    const index = read('docs/adr/README.md');
    const pages = readdirSync(join(root, 'docs/adr')).filter((name) => name.startsWith('0'));
    assert.deepEqual(
      pages.filter((page) => !index.includes(`(${page})`)),
      [],
    );
  });
});

/** What docs/operations.md does not name as code. */
const missing = (names: readonly string[]): string[] =>
  [...new Set(names)].filter((name) => !operations.includes(`\`${name}\``));

/** As GitHub makes anchors of headings. */
const headingsOf = (text: string): string[] =>
  all(text, /^#+ (.*)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
