import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isGenerated } from '../../docs/generate/markdown.ts';
import { generatedPages } from '../../docs/generate/pages.ts';
import pkg from '../../package.json' with { type: 'json' };
import { codeSections } from '../../src/client/code-entries.ts';
import { outputsIn } from '../support/shown-output.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const all = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((match) => match[1] ?? '');
const filesIn = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .map((name) => `${folder}/${name}`);

const documents = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...['.github', 'charts', 'docs', 'examples', 'certs'].flatMap((folder) => filesIn(folder, '.md')),
].sort();
/** The changelog and the decision records keep their original words. */
const isRecord = (document: string): boolean => document === 'CHANGELOG.md' || document.startsWith('docs/adr/');

describe('documents', () => {
  for (const document of documents) {
    const text = read(document);
    const code = [...all(text, /^ *```\w*\n([\s\S]*?)^ *```$/gm), ...all(text, /`([^`\n]+)`/g)];

    it(`${document} names files that exist`, () => {
      const named = code.flatMap((span) =>
        all(
          span,
          /(?:^|[\s(])((?:src|sandbox|test|charts|webhooks|certs|examples|docs|lint|\.ci|\.devcontainer|\.github)\/[\w./-]*\w\/?)/g,
        ),
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
      const targets = all(read('Makefile'), /^([a-z0-9-]+):/gm);
      const unknown = code
        .flatMap((span) => all(span, /^ *make ([a-z0-9-]+)/gm))
        .filter((name) => !targets.includes(name));
      assert.deepEqual(unknown, []);
    });
  }

  for (const document of documents) {
    const text = read(document);
    if (isRecord(document)) continue;

    it(`${document} has at most 35 words in a sentence`, () => {
      assert.deepEqual(
        sentencesOf(text).filter((sentence) => wordsOf(sentence).length > 35),
        [],
      );
    });

    if (isGenerated(text)) continue;

    const limit = document.startsWith('docs/') ? 1300 : 1600;
    it(`${document} has at most ${limit} words, as wc counts them`, () => {
      const words = text.split(/\s+/).filter((word) => word !== '').length;
      assert.ok(words <= limit, `${words} words`);
    });
  }

  it('quote messages exactly as the server writes them', () => {
    const sources = filesIn('src', '.ts').map(read).join('\n');
    const quoted = documents
      .filter((document) => !isRecord(document) && !isGenerated(read(document)))
      .flatMap((document) => all(read(document).replace(/^ *```[\s\S]*?^ *```$/gm, ''), /`([^`\n]+)`/g))
      .map((span) => span.replace(/^Secret …:? | …$/g, ''))
      .filter((span) => /^(?!kubectl|helm|make|drawbridge|node)[A-Za-z]+( [A-Za-z]+){2,}$/.test(span));
    assert.ok(quoted.length > 5);
    // The message of the API server while webhooks are down.
    const ofOthers = ['failed calling webhook'];
    assert.deepEqual(
      quoted.filter((message) => !sources.includes(message) && !ofOthers.includes(message)),
      [],
    );
  });

  it('show in tasks only the outputs that a test compares', () => {
    const tests = filesIn('test', '.ts').map(read).join('\n');
    const compared = [...tests.matchAll(/\bshown\(\s*'([^']+)',\s*'([^']+)'/g)];
    const pages = ['concepts', 'tasks', 'binding', 'inventory'].flatMap((folder) => filesIn(`docs/${folder}`, '.md'));
    const others = pages.flatMap((page) =>
      outputsIn(read(page)).filter(
        (output) => !compared.some(([, name, words = '']) => page === `docs/${name}` && output.includes(words)),
      ),
    );
    assert.deepEqual(others, []);
  });

  it('list every page under docs, with its question', () => {
    const pages = filesIn('docs', '.md').filter((page) => !/^docs\/(README|adr\/0)/.test(page));
    const isListed = (page: string): boolean =>
      ['docs', 'docs/binding', 'docs/inventory'].some(
        (folder) =>
          page.startsWith(`${folder}/`) && read(`${folder}/README.md`).includes(`(${page.slice(folder.length + 1)})`),
      );
    assert.deepEqual(
      pages.filter((page) => !isListed(page)),
      [],
    );
  });

  for (const [path, content] of generatedPages()) {
    it(`docs/${path} matches its sources; make manifests writes it`, () => {
      assert.equal(read(`docs/${path}`), content);
    });
  }

  it('describe every metric', () => {
    const metrics = filesIn('src', '.ts').flatMap((file) => all(read(file), metricName));
    assert.ok(metrics.length > 40);
    const described = all(read('docs/reference/metrics.md'), /^\| `(\w+)`/gm);
    assert.deepEqual(missing(metrics, described), []);
    assert.deepEqual(missing(described, metrics), []);
  });

  it('name metrics that exist', () => {
    const described = all(read('docs/reference/metrics.md'), /^\| `(\w+)`/gm);
    const named = documents.flatMap((document) =>
      all(read(document), /`((?:drawbridge|controller_runtime|workqueue|oz)_\w+\w)`/g),
    );
    assert.deepEqual(missing(named, described), []);
  });

  it('describe no unused code', () => {
    const sources = [
      ...filesIn('src', '.ts').filter((file) => !file.endsWith('codes.ts')),
      ...filesIn('charts/drawbridge/templates', 'policies.yaml'),
    ]
      .map(read)
      .join('\n');
    const codes = Object.values(codeSections).flatMap(Object.keys);
    assert.deepEqual(
      codes.filter((code) => !new RegExp(`['\\s]${code}[':]`).test(sources)),
      [],
    );
  });

  it('describe every code that a user of the inventory may meet', () => {
    const literal =
      /(?:\b(?:code|reason): |\b(?:CodedError|RejectedCall|errorAnswer|plainStatus)\([^'()]*(?:'\w+',\s)?)'([A-Z]\w+)'/g;
    const sources = [...filesIn('src/inventory', '.ts'), ...filesIn('src/admission', '.ts')].map(read);
    const found = sources.flatMap((source) => all(source, literal));
    assert.ok(new Set(found).size > 60, `${new Set(found).size} codes`);
    const pages = ['reference/codes', 'reference/conditions', 'inventory/run-reasons', 'inventory/component-contract'];
    const described = pages.flatMap((name) => all(read(`docs/${name}.md`), /`([A-Z]\w+)`/g));
    // Only other code reads these; users see the message.
    const ofComponents = ['ClusterAway', 'ForeignEntry', 'NoKubeconfig', 'NotAdministrator', 'NotOurs', 'RunAbandoned'];
    const ofServers = ['BadCertificate', 'CallerGone', 'UnpatchablePath'];
    // Conditions that need no action.
    const healthy = ['NoCircle', 'None', 'Watching'];
    assert.deepEqual(missing(found, [...described, ...ofComponents, ...ofServers, ...healthy]), []);
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

const metricName = /'((?:drawbridge|controller_runtime|workqueue|oz)_\w+)'/g;

const missing = (names: readonly string[], known: readonly string[]): string[] =>
  [...new Set(names)].filter((name) => !known.includes(name));

const wordsOf = (text: string): readonly string[] => text.match(/[\p{L}\p{N}][\p{L}\p{N}’'/.,-]*/gu) ?? [];

/** The sentences of paragraphs, list items, and table cells, without code. */
function sentencesOf(text: string): string[] {
  const prose = text
    .replace(/^ *```[\s\S]*?^ *```$/gm, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/`[^`]*`/g, 'X');
  const blocks = prose.split(/\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)|\|/);
  return blocks.flatMap((block) => block.replace(/\s+/g, ' ').split(/(?<=[.!?][)"*]*) /));
}

/** The anchors that GitHub generates for headings. */
const headingsOf = (text: string): string[] =>
  all(text, /^#+ (.*)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
