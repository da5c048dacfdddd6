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
/** Where flags, metrics, and codes are listed. */
const reference = filesIn('docs/reference', '.md').map(read).join('\n');
/** Generated pages, the record of releases, and decisions, which keep the words of their time. */
const isFree = (document: string, text: string): boolean =>
  document === 'CHANGELOG.md' || document.startsWith('docs/adr/') || text.startsWith('<!-- Generated');

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

  for (const document of documents) {
    const text = read(document);
    if (isFree(document, text)) continue;

    it(`${document} is short: at most 1,600 words, and 35 in a sentence`, () => {
      assert.ok(wordsOf(text).length <= 1600, `${wordsOf(text).length} words`);
      assert.deepEqual(
        sentencesOf(text).filter((sentence) => wordsOf(sentence).length > 35),
        [],
      );
    });

    it(`${document} names who acts`, () => {
      assert.deepEqual(all(text, /\b(nobody|somebody|whoever)\b/gi), []);
    });
  }

  it('list every page under docs, with its question', () => {
    const index = read('docs/README.md');
    const pages = filesIn('docs', '.md').map((path) => path.slice('docs/'.length));
    assert.deepEqual(
      pages.filter((page) => !/^(README|adr\/0)/.test(page) && !index.includes(`(${page})`)),
      [],
    );
  });

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

/** What no page of docs/reference/ names as code. */
const missing = (names: readonly string[]): string[] =>
  [...new Set(names)].filter((name) => !reference.includes(`\`${name}\``) && !reference.includes(`\`${name} `));

const wordsOf = (text: string): readonly string[] => text.match(/[\p{L}\p{N}][\p{L}\p{N}’'/.,-]*/gu) ?? [];

/** Prose without code: paragraphs, list items, and cells of tables, cut at ends of sentences. */
function sentencesOf(text: string): string[] {
  const prose = text
    .replace(/^ *```[\s\S]*?^ *```$/gm, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/`[^`]*`/g, 'X');
  const blocks = prose.split(/\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)|\|/);
  return blocks.flatMap((block) => block.replace(/\s+/g, ' ').split(/(?<=[.!?][)"*]*) /));
}

/** As GitHub makes anchors of headings. */
const headingsOf = (text: string): string[] =>
  all(text, /^#+ (.*)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
