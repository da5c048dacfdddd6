import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { type Alert, alerts } from '../../../docs/generate/alerts.ts';
import { run } from '../../../sandbox/build/run.ts';

const rulesOf = (feature: string): string => resolve(`charts/drawbridge/files/rules/${feature}.yaml`);

/** A test of promtool, which has only the series of one case. */
const test = (name: string, { cases }: Alert, kind: 'fires' | 'quiet') => ({
  name: `${name} ${kind}`,
  interval: '1m',
  input_series: Object.entries(cases).map(([series, samples]) => ({ series, values: samples[kind] })),
  promql_expr_test: [
    {
      expr: `count(ALERTS{alertname="${name}",alertstate="firing"})`,
      eval_time: '30m',
      exp_samples: kind === 'fires' ? [{ labels: '{}', value: 1 }] : [],
    },
  ],
});

describe('the alert rules', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'drawbridge-alerts-'));
  });
  after(() => rm(folder, { recursive: true }));

  const promtool = async (...args: string[]): Promise<void> => {
    const { code, stdout, stderr } = await run('promtool', args);
    assert.equal(code, 0, stdout + stderr);
  };

  for (const [feature, ofFeature] of Object.entries(alerts)) {
    it(`of ${feature} pass promtool check rules`, () => promtool('check', 'rules', '--lint-fatal', rulesOf(feature)));

    for (const [name, alert] of Object.entries(ofFeature)) {
      it(`fire, and do not fire just below the threshold: ${name}`, async () => {
        const file = join(folder, `${name}.yaml`);
        const tests = [test(name, alert, 'fires'), test(name, alert, 'quiet')];
        await writeFile(file, stringify({ rule_files: [rulesOf(feature)], evaluation_interval: '1m', tests }));
        await promtool('test', 'rules', file);
      });
    }
  }
});
