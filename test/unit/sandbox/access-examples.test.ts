import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { accessExamples } from '../../../sandbox/access-examples.ts';

describe('the sandbox speaks', () => {
  it('of groups as the templates have them', () => {
    const groups = [...accessExamples, 'examples/without-exec.yaml']
      .flatMap((file) => parseAllDocuments(readFileSync(file, 'utf8')))
      .flatMap((document) => document.toJS()?.spec?.accessConfig?.allowedGroups ?? []);
    assert.ok(groups.includes('devs'));
    assert.ok(!groups.includes('qa'));
  });
});
