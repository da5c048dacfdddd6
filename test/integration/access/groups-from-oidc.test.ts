import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { type Reader, runAsReader, scriptOf, tryAsReader, valuesOf } from '../../support/page-commands.ts';
import { shown } from '../../support/shown-output.ts';

const page = 'docs/tasks/groups-from-oidc.md';
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
/** The claims of the page. */
const [json = ''] = /(?<=```json\n)[^`]*/.exec(readFileSync(page, 'utf8')) ?? [];
const claims = JSON.parse(json) as { readonly iss: string };

/** An ID token for an hour. */
function tokenWith(more: object): string {
  const iat = Math.floor(Date.now() / 1000);
  const signed = [
    { alg: 'RS256', kid: 'one' },
    { ...claims, ...more, iat, exp: iat + 3600 },
  ]
    .map(base64url)
    .join('.');
  return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`;
}

/** Serves the discovery document and the key of the issuer, at another address than its name. */
async function startIssuer(tls: { readonly key: string; readonly cert: string }): Promise<[Server, string]> {
  const server = createServer(tls, ({ url }, response) => {
    const discovery = { issuer: claims.iss, jwks_uri: `${address}/keys` };
    const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(url === '/keys' ? { keys } : discovery));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return [server, address];
}

describe('an API server with OIDC, by the steps of groups-from-oidc.md', function () {
  this.timeout(120_000);
  let folder: string;
  let issuer: Server;
  let plane: Plane;
  let stage: AccessStage;

  before(async function () {
    this.timeout(240_000);
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-oidc-'));
    const authority = createAuthority('of the issuer');
    const { key, certificate } = issue(authority, { commonName: 'issuer', serves: ['127.0.0.1'] });
    const [server, address] = await startIssuer({ key, cert: certificate });
    issuer = server;
    const config = valuesOf(page, 'AuthenticationConfiguration');
    // The name of the issuer has no address here.
    Object.assign(config.jwt[0].issuer, {
      discoveryURL: `${address}/.well-known/openid-configuration`,
      certificateAuthority: authority.certificate,
    });
    const file = join(folder, 'authentication.yaml');
    writeFileSync(file, stringify(config));
    plane = await startPlane({ apiserverFlags: [`--authentication-config=${file}`] });
    stage = await AccessStage.open({ on: plane });
    await stage.configure('PodAccessTemplate', 'payments-shell', valuesOf(page, 'oidc:devs').spec.accessConfig);
    const apiGroup = 'rbac.authorization.k8s.io';
    await stage.apply({
      apiVersion: `${apiGroup}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'oidc' },
      roleRef: { apiGroup, kind: 'Role', name: 'request-access' },
      ...valuesOf(page, 'subjects'),
    });
    mkdirSync(join(folder, 'examples'));
    const example = 'examples/pod-access-request.yaml';
    const manifest = readFileSync(example, 'utf8').replace('namespace: payments', `namespace: ${stage.namespace}`);
    writeFileSync(join(folder, example), manifest);
  });
  after(async () => {
    await stage?.close();
    await plane?.stop();
    issuer?.close();
    if (folder) rmSync(folder, { recursive: true });
  });

  /** With a token of the issuer. */
  const readerWith = (more: object): Reader => {
    const config = parse(readFileSync(plane.adminKubeconfig, 'utf8'));
    config.users[0].user = { token: tokenWith(more) };
    const kubeconfig = join(folder, 'kubeconfig');
    writeFileSync(kubeconfig, stringify(config));
    return { plane, folder, kubeconfig };
  };

  it('gives Alice the groups of her token, with the prefix', async () => {
    const reader = readerWith({});
    const expected = shown('tasks/groups-from-oidc.md', 'ATTRIBUTE');
    let found = '';
    const isShown = async (): Promise<boolean> => {
      found = (await tryAsReader(reader, `exec 2>&1\n${scriptOf(page, 'auth whoami')}`)).stdout;
      return expected.test(found);
    };
    await until('the API server to have the key', isShown, { timeoutMs: 60_000 }).catch(() =>
      assert.match(found, expected),
    );
  });

  it('lets Alice request access', async () => {
    const created = await runAsReader(readerWith({}), scriptOf(page, '--dry-run=server'));
    assert.match(created, shown('tasks/groups-from-oidc.md', 'dry run'));
  });

  it('names the groups of Bob, whom it may not give access', async () => {
    await stage.kubectl('create', 'rolebinding', 'bob', '--role=request-access', '--user=oidc:bob');
    const bob = readerWith({ preferred_username: 'bob', groups: ['on-call'] });
    const { code, stderr } = await tryAsReader(bob, scriptOf(page, '--dry-run=server'));
    assert.equal(code, 1);
    assert.match(stderr.slice(stderr.indexOf('NotEligible')), shown('tasks/groups-from-oidc.md', 'NotEligible'));
  });
});
