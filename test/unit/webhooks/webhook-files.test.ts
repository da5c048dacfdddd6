import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { evaluate } from '@marcbachmann/cel-js';
import { parse, parseAllDocuments } from 'yaml';
import { routes } from '../../../src/admission/routes.ts';
import { folders, webhookFiles } from '../../../webhooks/webhook-files.ts';

const root = join(import.meta.dirname, '..', '..', '..');

interface Webhook {
  name: string;
  failurePolicy: string;
  matchPolicy: string;
  timeoutSeconds: number;
  objectSelector?: unknown;
  matchConditions?: { expression: string }[];
  clientConfig: { service: { namespace: string; name: string; path: string } };
  rules: { operations: string[]; resources: string[] }[];
}

interface Configuration {
  kind: string;
  metadata: { annotations: Record<string, string> };
  webhooks: Webhook[];
}

const features = ['access', 'inventory'] as const;
const configurationsOf = (feature: (typeof features)[number]): Configuration[] =>
  [...webhookFiles(feature).values()].flatMap((text) => parseAllDocuments(text).map((document) => document.toJS()));
const configurations = features.flatMap(configurationsOf);
const webhooks = configurations.flatMap((configuration) => configuration.webhooks);

const connects = ({ rules }: Webhook): boolean => rules.some((rule) => rule.operations.includes('CONNECT'));
const selectsOnConnect = (webhook: Webhook): boolean => connects(webhook) && webhook.objectSelector !== undefined;

describe('webhook manifests', () => {
  it('match the generator; `node --import tsx webhooks/generate.ts` updates them', () => {
    for (const feature of features) {
      const files = webhookFiles(feature);
      const { here, chart } = folders[feature];
      for (const folder of [join(root, 'webhooks', here), join(root, 'charts/drawbridge/files', chart)]) {
        const stored = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
        assert.deepEqual(stored.sort(), [...files.keys()].sort());
        for (const [name, content] of files) assert.equal(readFileSync(join(folder, name), 'utf8'), content);
      }
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

  it('fail closed, except to observe, to revoke access, and to keep entries writable', () => {
    for (const { name, failurePolicy, matchPolicy, timeoutSeconds, rules, clientConfig } of webhooks) {
      const opensNothing =
        clientConfig.service.path === '/watch-v1-pod' ||
        clientConfig.service.path.startsWith('/limit-') ||
        rules.every(({ operations }) => operations.every((each) => each === 'DELETE'));
      assert.equal(failurePolicy, opensNothing ? 'Ignore' : 'Fail', name);
      assert.equal(matchPolicy, 'Equivalent');
      // It only observes, so a hung server must not hold up the connections of all pods.
      assert.equal(timeoutSeconds, name === 'vpod.kb.io' ? 1 : 3);
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

  const named = (name: string, namespace = 'payments', username = 'alice') => ({
    request: { name, namespace, userInfo: { username } },
  });
  const gateway = 'system:serviceaccount:drawbridge-system:drawbridge-gateway';
  const entered: [string, object, 'watch' | 'enforce' | 'gateway'][] = [
    ['an access pod', named('debug-1a2b3c4d-access'), 'enforce'],
    ['a port of an access pod', named('debug-1a2b3c4d-access:8080'), 'enforce'],
    ['an access pod by scheme and port', named('https:debug-1a2b3c4d-access:8080'), 'enforce'],
    ['an access pod by an empty scheme and port', named(':debug-1a2b3c4d-access:'), 'enforce'],
    ['a pod of a workload', named('payments-6c4f9-abcde'), 'watch'],
    ['a pod with the ending in the middle', named('debug-access-0'), 'watch'],
    ['a port with such a name', named('web-0:web-access'), 'watch'],
    ['a pod of kube-system', named('debug-1a2b3c4d-access', 'kube-system'), 'watch'],
    ['a pod of drawbridge', named('debug-1a2b3c4d-access', 'drawbridge-system'), 'watch'],
    ['an access pod by the gateway', named('debug-1a2b3c4d-access', 'payments', gateway), 'gateway'],
    ['a pod of a workload by the gateway', named('payments-6c4f9-abcde', 'payments', gateway), 'gateway'],
    ['a pod of kube-system by the gateway', named('dns', 'kube-system', gateway), 'gateway'],
    ['a pod of drawbridge by the gateway', named('drawbridge-0', 'drawbridge-system', gateway), 'gateway'],
    [
      'an access pod by an account of that name in another namespace',
      named('debug-1a2b3c4d-access', 'payments', 'system:serviceaccount:payments:drawbridge-gateway'),
      'enforce',
    ],
  ];
  for (const [what, activation, expected] of entered) {
    it(`send connections to ${what} to one webhook: ${expected}`, () => {
      const called = webhooks
        .filter(connects)
        .filter(({ matchConditions }) =>
          (matchConditions ?? []).every(({ expression }) => evaluate(expression, { ...activation })),
        );
      assert.deepEqual(
        called.map(({ clientConfig }) => clientConfig.service.path),
        [`/${expected}-v1-pod`],
      );
    });
  }

  const isCalled = (path: string, activation: object): boolean => {
    const found = webhooks.find(({ clientConfig }) => clientConfig.service.path.startsWith(path));
    assert.ok(found?.matchConditions);
    return found.matchConditions.every(({ expression }) => evaluate(expression, { ...activation }) === true);
  };

  for (const [username, called] of [
    ['system:serviceaccount:fleet:inventory-0b0e3c1e.network', true],
    ['system:serviceaccount:fleet:inventory-odd', true],
    ['system:serviceaccount:fleet:my-inventory-x', false],
    ['system:serviceaccount:drawbridge-system:drawbridge', false],
    ['alice', false],
    ['system:admin', false],
  ] as const) {
    it(`${called ? 'authorize' : 'do not see'} writes of ${username}`, () => {
      assert.equal(isCalled('/fence-', { request: { userInfo: { username } } }), called);
    });
  }

  const naming = { mode: 'byoc', kubeconfigSecretRef: { name: 'a', key: 'config' } };
  const setBy = { kubeconfigSetBy: { username: 'alice' } };
  const changes: [string, string, object, object | undefined, boolean][] = [
    ['a new entry that names a Secret', 'CREATE', naming, undefined, true],
    ['a new entry with a setter', 'CREATE', setBy, undefined, true],
    ['a new entry without one', 'CREATE', { mode: 'byoc' }, undefined, false],
    ['another Secret', 'UPDATE', { ...naming, kubeconfigSecretRef: { name: 'b', key: 'config' } }, naming, true],
    ['another key', 'UPDATE', { ...naming, kubeconfigSecretRef: { name: 'a', key: 'x' } }, naming, true],
    ['a Secret that is named now', 'UPDATE', naming, {}, true],
    ['a Secret that is not named any more', 'UPDATE', {}, naming, true],
    ['a stamp', 'UPDATE', { ...naming, ...setBy }, naming, true],
    ['an omitted setter', 'UPDATE', naming, { ...naming, ...setBy }, true],
    ['another change', 'UPDATE', { ...naming, ...setBy, suspend: true }, { ...naming, ...setBy }, false],
  ];
  for (const [what, operation, spec, before, called] of changes) {
    it(`${called ? 'attest' : 'do not see'} ${what}`, () => {
      const oldObject = before === undefined ? null : { metadata: {}, spec: before };
      const object = { metadata: {}, spec };
      assert.equal(isCalled('/mutate-inventory-', { request: { operation }, object, oldObject }), called);
    });
  }

  const abandoned = { 'abandon.inventory.drawbridge.dev/network': 'lost' };
  const byAlice = { 'abandoned-by.inventory.drawbridge.dev/network': 'alice' };
  const other = { 'force.inventory.drawbridge.dev/network': '1' };
  const abandonments: [string, object | undefined, object | undefined, boolean][] = [
    ['a new entry with an abandoned component', abandoned, undefined, true],
    ['a new entry with another annotation', other, undefined, false],
    ['an abandonment', abandoned, {}, true],
    ['another reason', { 'abandon.inventory.drawbridge.dev/network': 'x' }, abandoned, true],
    ['the end of an abandonment', undefined, abandoned, true],
    ['a claimed user', { ...abandoned, ...byAlice }, abandoned, true],
    ['an omitted user', abandoned, { ...abandoned, ...byAlice }, true],
    ['another annotation', { ...abandoned, ...byAlice, ...other }, { ...abandoned, ...byAlice }, false],
  ];
  for (const [what, annotations, before, called] of abandonments) {
    it(`${called ? 'attest' : 'do not see'} ${what}`, () => {
      const objectOf = (given: object | undefined) => ({ metadata: given ? { annotations: given } : {}, spec: {} });
      const request = { operation: before ? 'UPDATE' : 'CREATE' };
      const oldObject = before ? objectOf(before) : null;
      assert.equal(isCalled('/mutate-inventory-', { request, object: objectOf(annotations), oldObject }), called);
    });
  }

  it('list each subresource', () => {
    const resources = webhooks.flatMap(({ rules }) => rules.flatMap((rule) => rule.resources));
    assert.deepEqual(
      resources.filter((resource) => resource.includes('*')),
      [],
    );
    for (const way of ['exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers']) {
      assert.equal(resources.filter((resource) => resource === `pods/${way}`).length, 3, way);
    }
  });

  it('take their CA from the certificate in certs/', () => {
    const files = { access: 'certificate.yaml', inventory: 'inventory-certificate.yaml' };
    for (const feature of features) {
      const { metadata, spec } = parse(readFileSync(join(root, 'certs', files[feature]), 'utf8'));
      for (const { metadata: its, webhooks } of configurationsOf(feature)) {
        assert.equal(its.annotations['cert-manager.io/inject-ca-from'], `${metadata.namespace}/${metadata.name}`);
        for (const { clientConfig } of webhooks) {
          const { namespace, name } = clientConfig.service;
          assert.ok(spec.dnsNames.includes(`${name}.${namespace}.svc`), name);
        }
      }
    }
  });
});
