import assert from 'node:assert/strict';
import { type Fault, ScriptedCluster } from '../../support/scripted-cluster.ts';
import * as objects from './objects.ts';

const PAGES = 20;
const PAGE = 500;

/** A list of 10,000 objects of one kind, in pages, as the API server answers; names become longer from page to page. */
const tenThousand =
  (plural: string, object: (name: string) => object): Fault =>
  ({ path, query }, answer) => {
    if (!path.endsWith(`/${plural}`)) return false;
    assert.equal(query.get('limit'), String(PAGE));
    const page = Number(query.get('continue') ?? 0);
    const items = Array.from({ length: PAGE }, (_, index) => object(`${'x'.repeat(page + 1)}-${page * PAGE + index}`));
    const last = page + 1 === PAGES;
    answer.json(200, { metadata: { resourceVersion: '7', ...(last ? {} : { continue: String(page + 1) }) }, items });
    return true;
  };
const request = (name: string) =>
  objects.request(name, { ready: true, podName: `${name}-access`, grant: { expiresAt: '2099-01-01T00:00:00Z' } });
const template = (name: string) =>
  objects.template({ allowedGroups: ['devs'] }, { status: { ready: true } }, { name, uid: name });

let cluster: ScriptedCluster;

describe('a list that expires between two pages', () => {
  afterEach(() => cluster.close());

  it('prints each object once, also those of the second page that it reads again', async () => {
    const names = ['first', 'second', 'third'];
    let hasExpired = false;
    cluster = await ScriptedCluster.open({}, ({ path, query }, answer) => {
      if (!path.endsWith('/podaccessrequests')) return false;
      const page = Number(query.get('continue') ?? 0);
      if (page === 2 && !hasExpired) {
        hasExpired = true;
        answer.json(410, { kind: 'Status', code: 410, reason: 'Expired', message: 'the continue token has expired' });
        return true;
      }
      const metadata = { resourceVersion: '7', ...(page < 2 ? { continue: String(page + 1) } : {}) };
      answer.json(200, { metadata, items: [request(names[page] ?? '')] });
      return true;
    });
    const { code, stdout, stderr } = await cluster.run(['list']);
    assert.equal(code, 0, stderr);
    assert.ok(hasExpired);
    const [, ...rows] = stdout.trimEnd().split('\n');
    assert.deepEqual(
      rows.map((row) => row.split(' ')[0]),
      names,
    );
  });
});

describe('a table of 10,000 objects', () => {
  afterEach(() => cluster.close());

  const cases: readonly (readonly [argv: readonly string[], plural: string, object: (name: string) => object])[] = [
    [['list'], 'podaccessrequests', request],
    [['list', '--everyone'], 'podaccessrequests', request],
    [['who'], 'podaccessrequests', request],
    [['templates'], 'podaccesstemplates', template],
  ];
  for (const [argv, plural, object] of cases) {
    it(`shows its first rows after one page of each kind, and one row for each object: ${argv.join(' ')}`, async () => {
      cluster = await ScriptedCluster.open({}, tenThousand(plural, object));
      let listsBefore: number | undefined;
      const lists = (): number => cluster.server.requests.filter(({ method }) => method === 'GET').length;
      const { code, stdout, stderr } = await cluster.run(argv, new AbortController().signal, () => {
        listsBefore ??= lists();
      });
      assert.equal(code, 0, stderr);
      // Of pods and of exec.
      assert.equal(listsBefore, 2);
      assert.equal(lists(), PAGES + 1);
      const [header = '', ...rows] = stdout.trimEnd().split('\n');
      assert.equal(rows.length, PAGES * PAGE);
      // All columns of the first page stand below their titles.
      const columns = header.match(/\S+( \S+)* */g) ?? [];
      let at = 0;
      for (const column of columns.slice(0, -1)) {
        at += column.length;
        assert.ok(
          rows.slice(0, PAGE).every((row) => /^ \S/.test(row.slice(at - 1, at + 1))),
          column,
        );
      }
    });
  }
});
