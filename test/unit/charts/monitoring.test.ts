import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { boardQueries } from '../../../charts/boards.ts';
import { monitoringFiles } from '../../../charts/monitoring-files.ts';
import { alerts, metricsIn } from '../../../docs/generate/alerts.ts';

const root = new URL('../../../', import.meta.url);
const chart = new URL('charts/drawbridge/', root);
const page = readFileSync(new URL('docs/reference/alerts.md', root), 'utf8');
const described = new Set(
  [...readFileSync(new URL('docs/reference/metrics.md', root), 'utf8').matchAll(/^\| `(\w+)`/gm)].map(
    ([, name]) => name,
  ),
);
const undeclared = (queries: readonly string[]): string[] =>
  [...metricsIn(...queries)].filter((name) => !described.has(name));

describe('the rules and boards of the chart', () => {
  const files = monitoringFiles();

  it('match their sources; make manifests writes them', () => {
    const found = ['files/rules', 'files/dashboards'].flatMap((folder) =>
      readdirSync(new URL(folder, chart)).map((name) => `${folder}/${name}`),
    );
    assert.deepEqual(found.sort(), [...files.keys()].sort());
    for (const [path, content] of files) assert.equal(readFileSync(new URL(path, chart), 'utf8'), content, path);
  });

  for (const [feature, ofFeature] of Object.entries(alerts)) {
    const { groups } = parse(files.get(`files/rules/${feature}.yaml`) ?? '');

    it(`link each alert of ${feature} to its heading`, () => {
      const headings = [...page.matchAll(/^### (\w+)$/gm)].map(([, heading = '']) => heading.toLowerCase());
      const [{ rules }] = groups;
      assert.equal(rules.length, Object.keys(ofFeature).length);
      for (const { alert, annotations } of rules) {
        assert.match(alert, /^Drawbridge[A-Z]/);
        const [path, anchor] = annotations.runbook_url.split('#');
        assert.equal(path, 'docs/reference/alerts.md');
        assert.ok(headings.includes(anchor), anchor);
      }
    });

    it(`name only metrics of the server in the alerts of ${feature}, and in their cases`, () => {
      for (const [name, { expression, cases }] of Object.entries(ofFeature)) {
        assert.deepEqual(undeclared([expression, ...Object.keys(cases)]), [], name);
        assert.ok(metricsIn(expression).size > 0 || expression.includes('up{'), name);
      }
    });
  }

  it('name each alert once, so that its heading is one', () => {
    const names = Object.values(alerts).flatMap(Object.keys);
    assert.equal(new Set(names).size, names.length);
  });

  for (const [name, queries] of Object.entries(boardQueries)) {
    it(`name only metrics of the server in the board of ${name}`, () => {
      assert.deepEqual(undeclared(queries), []);
      assert.ok(metricsIn(...queries).size > 5);
    });
  }

  it('show every metric of binding and of the inventory on their boards', () => {
    for (const name of ['binding', 'inventory'] as const) {
      const own = [...described].filter((metric) => metric?.startsWith(`drawbridge_${name}_`));
      assert.deepEqual(
        own.filter((metric) => !metricsIn(...(boardQueries[name] ?? [])).has(metric ?? '')),
        [],
      );
    }
  });
});
