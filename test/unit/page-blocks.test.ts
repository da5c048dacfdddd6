import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const filesIn = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .map((name) => `${folder}/${name}`);

/** The shell blocks that no test runs, by their page and words, and why. */
const exceptions: readonly (readonly [page: string, words: string, why: string])[] = [
  ['tasks/groups-from-oidc', '--oidc-issuer-url', 'needs an issuer at a name; a test runs the file instead'],
  ['tasks/install', 'NAME=VALUE', 'names no value'],
  ['tasks/monitor', 'POD:8080', 'needs a Pod of drawbridge'],
  ['tasks/open-sessions-through-the-gateway', 'clusterrolebinding', 'a test runs that of watch-sessions'],
  ['tasks/open-sessions-through-the-gateway', 'API_SERVER', 'tests of the gateway get the path from the grant'],
  ['tasks/open-sessions-through-the-gateway', 'delete apiservice', 'other tests need the APIService'],
  ['tasks/uninstall', 'revoke-all', 'needs a Pod of drawbridge'],
  ['tasks/use-the-console', 'drawbridge console\n', 'it runs until Ctrl-C; tests of the console start it'],
  ['tasks/use-the-console', 'ssh', 'needs another machine'],
  ['tasks/verify-a-release', 'cosign', 'needs a signature by GitHub'],
  ['tasks/verify-the-audit-journal', 'kubectl logs', 'needs a Pod of drawbridge'],
  ['binding/bind-a-provider', 'kubectl logs', 'needs a kubelet with logs'],
  ['inventory/write-a-component', 'make integration', 'runs with the other tests'],
];

/** The blocks of each page, by its path below docs/ without `.md`. */
const blocks = new Map(
  ['tasks', 'binding', 'inventory']
    .flatMap((folder) => filesIn(`docs/${folder}`, '.md'))
    .map((path) => {
      const found = [...read(path).matchAll(/^( *)```(sh|shell|bash|console)\n(.*?)^\1```/gms)].map(
        ([, , language, text = '']) =>
          language === 'console' ? text.replaceAll(/^(?: *\$ (.*\n)|.*\n)/gm, '$1') : text,
      );
      return [path.slice('docs/'.length, -'.md'.length), found] as const;
    }),
);
const pageOf = (name: string): string | undefined =>
  [...blocks.keys()].find((page) => [`docs/${page}.md`, `${page.split('/')[1]}.md`, page.split('/')[1]].includes(name));
const literalsIn = (text = ''): string[] =>
  [...text.matchAll(/'((?:[^'\\\n]|\\.)+)'/g)].map(([, one = '']) => one.replaceAll('\\n', '\n'));

/** Calls in tests that take a block from a page, by the page and the words; without a page, from that of the constant `page`. */
const call =
  /\b(scriptOf|commandsOf|block|follow|prints|runUntil|run|read|lineOf|linesOf)\(\s*('[^']*'|\w+)(?:,\s*('(?:[^'\\]|\\.)*'|\w+))?,?\s*[,)]/g;

/** The blocks that the calls of a test file take. */
function takenBy(source: string): string[] {
  const constants = new Map(
    [...source.matchAll(/\b(\w+) = '([^']+\.md)'/g)].map(([, name = '', at = '']) => [name, at]),
  );
  return [...source.matchAll(call)].flatMap(([, reader, first = '', second]) => {
    const named = pageOf(constants.get(first) ?? literalsIn(first)[0] ?? '');
    const found = blocks.get(named ?? pageOf(constants.get('page') ?? '') ?? '') ?? [];
    if (reader === 'linesOf') return found.filter((block) => /^(?: *drawbridge .*\n)+$/.test(block));
    const words = named ? second : first;
    if (words === undefined) return found.slice(0, 1);
    // Words in a variable are among the others of the file.
    const literals = words.startsWith("'") ? literalsIn(words) : literalsIn(source).filter(({ length }) => length > 5);
    return literals.flatMap((one) => found.find((block) => block.includes(one)) ?? []);
  });
}

describe('the shell blocks of the pages', () => {
  const ofException = ([page, words]: (typeof exceptions)[number]): string[] =>
    (blocks.get(page) ?? []).filter((block) => block.includes(words));
  const sources = ['integration', 'faults', 'e2e', 'support'].flatMap((folder) => filesIn(`test/${folder}`, '.ts'));
  const taken = new Set(sources.map(read).flatMap(takenBy));
  const others = [...blocks.values()].flat().filter((block) => !taken.has(block));

  it('are run by a test that takes them from the page, except a few', () => {
    assert.deepEqual(others, exceptions.flatMap(ofException));
  });
});
