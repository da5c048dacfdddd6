import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { accessKinds } from '../../../src/api/access/kinds.ts';
import { planHashAnnotation, requestLabel, revokeFinalizer } from '../../../src/api/access/names.ts';
import { codeSections } from '../../../src/client/code-entries.ts';

/** The label of a Namespace that only administrators may write. */
const allowPrivilegedLabel = 'access.drawbridge.dev/allow-privileged';

const root = join(import.meta.dirname, '..', '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Policy {
  kind: string;
  metadata: { name: string };
  spec: {
    failurePolicy?: string;
    policyName?: string;
    validationActions?: string[];
    matchConstraints?: { resourceRules: { resources: string[] }[] };
    variables?: { name: string; expression: string }[];
    validations?: { expression: string; message?: string; messageExpression?: string; reason: string }[];
  };
}

const templates = 'charts/drawbridge/templates';
const text = readdirSync(join(root, templates))
  .filter((file) => file.endsWith('policies.yaml'))
  .map((file) => read(join(templates, file)))
  .join('---\n')
  .replaceAll('{{ .Release.Namespace }}', 'drawbridge-system')
  // Removes the conditions under which the chart installs them, and variables.
  .replaceAll(/^\{\{-? (?:if|end|\$).*\}\}$/gm, '')
  .replaceAll(/\{\{.*?\}\}/g, '{}');
const documents = parseAllDocuments(text).map((document) => document.toJS() as Policy);
const policies = documents.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');

describe('admission policies', () => {
  it('fail closed, and each has a binding', () => {
    for (const { metadata, spec } of policies) {
      assert.equal(spec.failurePolicy, 'Fail', metadata.name);
      const bindings = documents.filter((one) => one.spec.policyName === metadata.name);
      assert.deepEqual(
        bindings.map((one) => one.spec.validationActions),
        [['Deny']],
      );
    }
    assert.equal(documents.length, 2 * policies.length);
  });

  it('cover every kind of the project and its status', () => {
    const guarded = new Set(
      policies.flatMap(({ spec }) => spec.matchConstraints?.resourceRules ?? []).flatMap((rule) => rule.resources),
    );
    for (const { resource } of accessKinds) {
      assert.ok(guarded.has(`${resource.plural}/status`), resource.plural);
      assert.ok(guarded.has(resource.plural), resource.plural);
    }
  });

  it('use the annotations and labels that the server sets', () => {
    const named = new Set(text.match(/access\.drawbridge\.dev\/[a-z-]+/g));
    const known = [planHashAnnotation, requestLabel, revokeFinalizer, allowPrivilegedLabel];
    assert.deepEqual([...named].sort(), known.sort());
  });

  it('use the service account that the role bindings name', () => {
    const users = new Set(text.match(/system:serviceaccount:drawbridge[\w:-]+/g));
    const account = 'system:serviceaccount:drawbridge-system:drawbridge';
    assert.deepEqual([...users].sort(), [account, `${account}-binding`, `${account}-gateway`, `${account}-inventory`]);
  });

  it('deny with a documented code', () => {
    const codes = Object.values(codeSections).flatMap(Object.keys);
    for (const { message, messageExpression, reason } of policies.flatMap(({ spec }) => spec.validations ?? [])) {
      const [, code = ''] = /^'?(\w+):/.exec(message ?? messageExpression ?? '') ?? [];
      assert.ok(codes.includes(code), code);
      assert.equal(reason, 'Forbidden');
    }
  });

  it('reserve the label of a grant also in a Binding, whose labels the API server copies to its Pod', () => {
    const children = policies.find(({ metadata }) => metadata.name === 'drawbridge-children');
    const covered = children?.spec.matchConstraints?.resourceRules.flatMap(({ resources }) => resources) ?? [];
    for (const resource of ['pods', 'pods/binding', 'bindings']) assert.ok(covered.includes(resource), resource);
  });

  it('deny claims and extensions of a request that is being deleted, which the webhooks skip', () => {
    const access = policies.find(({ metadata }) => metadata.name === 'drawbridge-access');
    const deleted = access?.spec.validations?.find(({ message }) => message?.includes('WrongState: '));
    assert.ok(deleted, 'no rule WrongState');
    assert.match(deleted.expression, /!has\(variables\.before\.metadata\.deletionTimestamp\)$/);
    assert.match(deleted.message ?? '', /the request has ended and is being deleted; create a new request$/);
  });
});
