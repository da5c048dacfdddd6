import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { evaluate } from '@marcbachmann/cel-js';
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
  matchConditions?: { expression: string }[];
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

const connects = ({ rules }: Webhook): boolean => rules.some((rule) => rule.operations.includes('CONNECT'));
const selectsOnConnect = (webhook: Webhook): boolean => connects(webhook) && webhook.objectSelector !== undefined;

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
    for (const { name, failurePolicy, matchPolicy, timeoutSeconds, rules, clientConfig } of webhooks) {
      const opensNothing =
        clientConfig.service.path === '/watch-v1-pod' ||
        rules.every(({ operations }) => operations.every((each) => each === 'DELETE'));
      assert.equal(failurePolicy, opensNothing ? 'Ignore' : 'Fail', name);
      assert.equal(matchPolicy, 'Equivalent');
      assert.equal(timeoutSeconds, 3);
    }
  });

  it('have no object selector on CONNECT, where it would match nothing', () => {
    const stored = readdirSync(join(root, 'webhooks'))
      .filter((name) => name.endsWith('.yaml'))
      .flatMap((name) => parseAllDocuments(readFileSync(join(root, 'webhooks', name), 'utf8')))
      .flatMap((document) => (document.toJS() as Configuration).webhooks);
    assert.ok(stored.some((webhook) => connects(webhook)));
    assert.deepEqual(stored.filter(selectsOnConnect), []);
    const planted = stored.map((webhook) => ({ ...webhook, objectSelector: { matchLabels: { a: 'b' } } }));
    assert.equal(planted.filter(selectsOnConnect).length, stored.filter(connects).length);
  });

  const named = (name: string, namespace = 'payments') => ({ request: { name, namespace } });
  const entered: [string, object, 'watch' | 'enforce'][] = [
    ['an access pod', named('debug-1a2b3c4d-access'), 'enforce'],
    ['a port of an access pod', named('debug-1a2b3c4d-access:8080'), 'enforce'],
    ['an access pod by scheme and port', named('https:debug-1a2b3c4d-access:8080'), 'enforce'],
    ['an access pod by an empty scheme and port', named(':debug-1a2b3c4d-access:'), 'enforce'],
    ['a pod of a workload', named('payments-6c4f9-abcde'), 'watch'],
    ['a pod with the ending in the middle', named('debug-access-0'), 'watch'],
    ['a port with such a name', named('web-0:web-access'), 'watch'],
    ['a pod of kube-system', named('debug-1a2b3c4d-access', 'kube-system'), 'watch'],
    ['a pod of ours', named('debug-1a2b3c4d-access', 'drawbridge-system'), 'watch'],
  ];
  for (const [what, activation, expected] of entered) {
    it(`tell one webhook of those who enter ${what}: ${expected}`, () => {
      const told = webhooks
        .filter(connects)
        .filter(({ matchConditions }) =>
          (matchConditions ?? []).every(({ expression }) => evaluate(expression, { ...activation })),
        );
      assert.deepEqual(
        told.map(({ clientConfig }) => clientConfig.service.path),
        [`/${expected}-v1-pod`],
      );
    });
  }

  it('name subresources one by one', () => {
    const resources = webhooks.flatMap(({ rules }) => rules.flatMap((rule) => rule.resources));
    assert.deepEqual(
      resources.filter((resource) => resource.includes('*')),
      [],
    );
    for (const way of ['exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers']) {
      assert.equal(resources.filter((resource) => resource === `pods/${way}`).length, 2, way);
    }
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
