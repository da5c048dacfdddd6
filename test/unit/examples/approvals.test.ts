import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { explain } from '../../../src/access/policy/policy.ts';
import { type TemplateInput, templatePolicy, templateWarnings } from '../../../src/access/policy/template-policy.ts';
import { accessOfTemplate } from '../../../src/api/access/kinds.ts';
import type { TemplateKind } from '../../../src/api/access/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { readBySchema } from '../../../src/api/schema/read.ts';

const file = join(import.meta.dirname, '../../../examples/approvals.yaml');
const templates = parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as KubeObject);

describe('the example templates with approvals', () => {
  it('are four, with names of their own', () => {
    assert.equal(new Set(templates.map(({ metadata }) => metadata.name)).size, 4);
  });

  for (const { kind, metadata, spec } of templates) {
    it(`${metadata.name} fits the schema and the rule book, without a warning`, () => {
      const templateKind = kind as TemplateKind;
      const { structural } = accessOfTemplate(templateKind).template;
      const read = readBySchema<TemplateInput['spec']>(structural.spec, spec, 'spec');
      assert.ok(read.ok, JSON.stringify(read));
      const { name } = metadata;
      const input = { kind: templateKind, namespace: 'payments', name, spec: read.value, grantable: [] };
      const failed = explain(templatePolicy, input).filter(({ verdict }) => verdict !== 'pass');
      assert.deepEqual(failed, []);
      assert.deepEqual(templateWarnings(input), []);
      assert.ok(read.value.accessConfig.approvals);
    });
  }
});
