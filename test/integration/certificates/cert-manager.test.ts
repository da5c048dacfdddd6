import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { Plane } from '../../../sandbox/plane.ts';
import { installCertManagerCrds } from '../../support/module-crds.ts';
import { sharedPlane } from '../../support/plane.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../../certs/${name}`, import.meta.url));
const namespace = 'drawbridge-system';
const names = ['issuer.yaml', 'certificate.yaml', 'inventory-certificate.yaml'];
const files = names.flatMap((name) => ['-f', path(name)]);

interface Manifest {
  kind: string;
  metadata: { name: string };
  spec: { dnsNames?: string[]; secretName?: string; ca?: { secretName: string }; issuerRef?: { name: string } };
}

describe('the cert-manager manifests', () => {
  let plane: Plane;

  before(async function () {
    // The first run on a machine downloads the module.
    this.timeout(300_000);
    plane = await sharedPlane();
    await installCertManagerCrds(plane);
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    const { status } = await plane.call('POST', '/api/v1/namespaces', body);
    assert.ok(status === 201 || status === 409, `creating ${namespace} answered ${status}`);
  });

  after(async () => {
    await plane?.kubectl(['delete', '--ignore-not-found', ...files]);
  });

  it('are valid by the schemas of cert-manager itself', async () => {
    const { stdout, stderr } = await plane.kubectl(['apply', '--validate=strict', ...files]);
    assert.deepEqual(stdout.trim().split('\n'), [
      'issuer.cert-manager.io/drawbridge-selfsigned created',
      'certificate.cert-manager.io/drawbridge-webhook-ca created',
      'issuer.cert-manager.io/drawbridge-webhook-ca created',
      'certificate.cert-manager.io/drawbridge-webhook created',
      'certificate.cert-manager.io/drawbridge-inventory-webhook created',
    ]);
    assert.equal(stderr, '');
  });

  it('form a chain: the issuer signs with the Secret of the root, and the webhook certificates name that issuer', () => {
    const manifests = names.flatMap((name) =>
      parseAllDocuments(readFileSync(path(name), 'utf8')).map((document) => document.toJS() as Manifest),
    );
    const named = (kind: string, name: string): Manifest['spec'] | undefined =>
      manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)?.spec;
    const serving = named('Certificate', 'drawbridge-webhook');
    const inventory = named('Certificate', 'drawbridge-inventory-webhook');
    assert.deepEqual(inventory?.issuerRef, serving?.issuerRef);
    assert.notEqual(inventory?.secretName, serving?.secretName);
    const issuer = named('Issuer', serving?.issuerRef?.name ?? '');
    const root = manifests.find(({ spec }) => spec.secretName === issuer?.ca?.secretName);
    assert.equal(root?.metadata.name, 'drawbridge-webhook-ca');
    assert.ok(named('Issuer', root.spec.issuerRef?.name ?? ''));
    assert.ok(serving?.dnsNames?.includes(`drawbridge-webhook.${namespace}.svc`));
  });

  const faults: [string, (manifest: string) => string, RegExp][] = [
    ['without a secret', (text) => text.replace(/^ *secretName:.*\n/m, ''), /spec\.secretName: Required value/],
    [
      'with an unknown algorithm',
      (text) => text.replace('algorithm: ECDSA', 'algorithm: DSA'),
      /Unsupported value: "DSA"/,
    ],
    ['with an unknown usage', (text) => text.replace('server auth', 'serving'), /Unsupported value: "serving"/],
    [
      'with a misspelt field',
      (text) => text.replace('renewBefore:', 'renewBfore:'),
      /unknown field "spec\.renewBfore"/,
    ],
  ];
  for (const [title, breakIt, message] of faults) {
    it(`would be rejected ${title}`, async () => {
      const input = breakIt(readFileSync(path('certificate.yaml'), 'utf8'));
      const { code, stderr } = await plane.kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], {
        input,
        reject: false,
      });
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    });
  }
});
