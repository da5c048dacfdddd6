import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { routes } from '../../../src/admission/routes.ts';
import { webhookFiles } from '../../../webhooks/webhook-files.ts';

const root = join(import.meta.dirname, '..', '..', '..');

interface Webhook {
  name: string;
  failurePolicy: string;
  matchPolicy: string;
  timeoutSeconds: number;
  objectSelector?: unknown;
  clientConfig: { service: { path: string } };
  rules: { operations: string[]; resources: string[] }[];
}

interface Configuration {
  kind: string;
  metadata: { annotations: Record<string, string> };
  webhooks: Webhook[];
}

const configurations: Configuration[] = [...webhookFiles().values()].flatMap((text) =>
  parseAllDocuments(text).map((document) => document.toJS()),
);
const webhooks = configurations.flatMap((configuration) => configuration.webhooks);

describe('webhook manifests', () => {
  it('are what the generator makes of the routes; `node --import tsx webhooks/generate.ts` brings them up to date', () => {
    const stored = readdirSync(join(root, 'webhooks')).filter((name) => name.endsWith('.yaml'));
    assert.deepEqual(stored.sort(), [...webhookFiles().keys()].sort());
    for (const [name, content] of webhookFiles()) {
      assert.equal(readFileSync(join(root, 'webhooks', name), 'utf8'), content);
    }
  });

  it('register every operation of every route once', () => {
    const calls = (list: { path: string; operations: readonly string[] }[]) =>
      list.flatMap(({ path, operations }) => operations.map((operation) => `${operation} ${path}`)).sort();
    const registered = webhooks.map(({ clientConfig, rules }) => ({
      path: clientConfig.service.path,
      operations: rules.flatMap((rule) => rule.operations),
    }));
    assert.deepEqual(calls(registered), calls([...routes]));
    assert.equal(new Set(webhooks.map(({ name }) => name)).size, webhooks.length);
  });

  it('fail closed, except where they only watch or access is given back', () => {
    for (const { name, failurePolicy, matchPolicy, timeoutSeconds, rules } of webhooks) {
      const opensNothing = rules.every(({ operations }) =>
        operations.every((each) => each === 'CONNECT' || each === 'DELETE'),
      );
      assert.equal(failurePolicy, opensNothing ? 'Ignore' : 'Fail', name);
      assert.equal(matchPolicy, 'Equivalent');
      assert.equal(timeoutSeconds, 3);
    }
  });

  it('have no object selector on CONNECT, where it would match nothing', () => {
    for (const { name, rules, objectSelector } of webhooks) {
      if (rules.some((rule) => rule.operations.includes('CONNECT'))) assert.equal(objectSelector, undefined, name);
    }
  });

  it('name subresources one by one', () => {
    const resources = webhooks.flatMap(({ rules }) => rules.flatMap((rule) => rule.resources));
    assert.deepEqual(
      resources.filter((resource) => resource.includes('*')),
      [],
    );
    assert.ok(resources.includes('pods/exec') && resources.includes('pods/attach'));
  });

  it('take their CA from the certificate that certs/ asks for', () => {
    const { metadata } = parse(readFileSync(join(root, 'certs', 'certificate.yaml'), 'utf8'));
    for (const configuration of configurations) {
      assert.equal(
        configuration.metadata.annotations['cert-manager.io/inject-ca-from'],
        `${metadata.namespace}/${metadata.name}`,
      );
    }
  });
});
