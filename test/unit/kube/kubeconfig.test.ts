import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { stringify } from 'yaml';
import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { describe as textOf } from '../../../src/kit/errors.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { TransportError } from '../../../src/kube/errors.ts';
import { inlineCredentials } from '../../../src/kube/inline-kubeconfig.ts';
import { ambientCredentials, contextNames, fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { Transport } from '../../../src/kube/transport.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const authority = createAuthority('test-ca');
const serving = issue(authority, { commonName: 'server', serves: ['localhost', '127.0.0.1'] });
const alice = issue(authority, { commonName: 'alice', groups: ['dev'] });
const bob = issue(authority, { commonName: 'bob' });

interface Parts {
  readonly cluster?: Record<string, unknown>;
  readonly user?: object;
  readonly context?: Record<string, unknown>;
  readonly name?: string;
}

function kubeconfig({ cluster = {}, user = {}, context = {}, name = 'main' }: Parts): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    preferences: { colors: true },
    clusters: [{ name, cluster: { server: 'https://one.test:6443', ...cluster } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, ...context } }],
    'current-context': name,
  });
}

describe('kubeconfig', () => {
  let directory: string;
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(directory, name);
    await writeFile(path, text, { mode: 0o600 });
    return path;
  };

  const read = async (name: string, parts: Parts): Promise<Credentials> =>
    fileCredentials(await write(name, kubeconfig(parts)));
  const headersOf = async (credentials: Credentials) => (await credentials.connectionAuth()).headers;
  /** A user whose credentials a plugin with this script prints. */
  const execUser = async (name: string, script: string): Promise<object> => {
    const command = await write(name, `#!/bin/sh\n${script}\n`);
    await chmod(command, 0o700);
    return { exec: { apiVersion: 'client.authentication.k8s.io/v1', command } };
  };

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  });
  after(() => rm(directory, { recursive: true }));

  it('reads a file with relative paths', async () => {
    await write('ca.crt', authority.certificate);
    const credentials = await read('paths.yaml', {
      cluster: { 'certificate-authority': 'ca.crt', 'tls-server-name': 'inner' },
      user: { token: 'secret' },
      context: { namespace: 'team' },
    });
    assert.equal(credentials.server, 'https://one.test:6443');
    assert.equal(credentials.namespace, 'team');
    const { tls, headers } = await credentials.connectionAuth();
    assert.equal(String(tls.ca), authority.certificate);
    assert.equal(tls.servername, 'inner');
    assert.deepEqual(headers, { authorization: 'Bearer secret' });
  });

  it('reads a token file with a relative path and a newline', async () => {
    await write('token', 'from-file\n');
    const credentials = await read('tokenfile.yaml', { user: { tokenFile: 'token' } });
    assert.deepEqual(await headersOf(credentials), { authorization: 'Bearer from-file' });
  });

  it('runs an exec plugin', async () => {
    const printed =
      '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}';
    const credentials = await read('exec.yaml', { user: await execUser('plugin.sh', `echo '${printed}'`) });
    assert.deepEqual(await headersOf(credentials), { authorization: 'Bearer from-plugin' });
  });

  it('does not show what an exec plugin prints, which may be a token', async () => {
    const user = await execUser('bad-plugin.sh', "echo 'TOKEN=s3cret {bad?'");
    const credentials = await read('bad-exec.yaml', { user });
    const error = await credentials.connectionAuth().catch((reason: unknown) => reason);
    assert.match(textOf(error), /^the exec plugin ".*bad-plugin\.sh" printed no ExecCredential;/);
    assert.doesNotMatch(textOf(error), /s3cret/);
  });

  it('impersonates a user with groups, uid, and extras, as kubectl does', async () => {
    const user = { token: 'x', as: 'dora', 'as-groups': ['a', 'b'], 'as-uid': '7', 'as-user-extra': { 'a/b': ['c'] } };
    assert.deepEqual(await headersOf(await read('as.yaml', { user })), {
      authorization: 'Bearer x',
      'impersonate-user': 'dora',
      'impersonate-group': ['a', 'b'],
      'impersonate-uid': '7',
      'impersonate-extra-a%2fb': ['c'],
    });
    const { as: _, ...groups } = user;
    await assert.rejects(read('groups.yaml', { user: groups }), { code: 'KubeconfigInvalid' });
  });

  const from = (url: string): Promise<Credentials> => read('proxy.yaml', { cluster: { 'proxy-url': url } });

  it('accepts a proxy whose user and password can be decoded', async () => {
    assert.equal((await (await from('http://a:b%25@proxy:1')).connectionAuth()).tls.proxy, 'http://a:b%25@proxy:1');
    await assert.rejects(from('http://a:%zz@proxy:1'), { code: 'KubeconfigInvalid' });
  });

  it('rejects a proxy that is not HTTP, and names its scheme but not its password', async () => {
    const rejected = (url: string, found: string): Promise<void> =>
      assert.rejects(from(url), {
        message: `kubeconfig: the proxy-url of cluster "main" ${found}; it must begin with http:// or https://`,
      });
    await rejected('socks5://a:s3cret@proxy:1', 'has the scheme "socks5", which is not supported');
    await rejected('s3cret', 'is not a URL');
  });

  it('merges the files of KUBECONFIG, prefers the first, and uses the requested context', async () => {
    const first = await write('first.yaml', kubeconfig({ cluster: { server: 'https://first.test' } }));
    const second = await write('second.yaml', kubeconfig({ cluster: { server: 'https://second.test' } }));
    const other = await write('other.yaml', kubeconfig({ cluster: { server: 'https://other.test' }, name: 'other' }));
    const paths = [join(directory, 'absent'), first, second, other].join(delimiter);
    assert.equal((await ambientCredentials({ paths })).server, 'https://first.test');
    assert.equal((await ambientCredentials({ paths, context: 'other' })).server, 'https://other.test');
    assert.deepEqual(await contextNames({ paths }), ['main', 'other']);
    await assert.rejects(ambientCredentials({ paths, context: 'nope' }), {
      code: 'KubeconfigContextNotFound',
      message:
        'kubeconfig: context "nope" does not exist; available contexts: "main", "other"; ' +
        'set --context to one of them, or run kubectl config use-context NAME',
    });
  });

  it('names the context without a cluster, and a missing current-context', async () => {
    await assert.rejects(read('lost.yaml', { context: { cluster: 'gone' } }), {
      code: 'KubeconfigContextNotFound',
      message:
        'kubeconfig: context "main" names cluster "gone", which does not exist; add the cluster, or use another context',
    });
    const unset = kubeconfig({}).replace(/current-context: .*/, '');
    await assert.rejects(fileCredentials(await write('unset.yaml', unset)), {
      code: 'KubeconfigContextNotFound',
      message:
        'kubeconfig: no current-context is set; available contexts: "main"; ' +
        'set --context to one of them, or run kubectl config use-context NAME',
    });
  });

  it('never shows the text of a kubeconfig that cannot be parsed', async () => {
    const broken = await write('broken.yaml', 'users: [{name: me, user: {token: s3cret}}\n');
    const error = await fileCredentials(broken).catch((reason: unknown) => reason);
    assert.match(textOf(error), /^kubeconfig ".*" cannot be used: [^\n]+$/);
    assert.doesNotMatch(textOf(error), /s3cret/);
  });

  it('names a missing or invalid part', async () => {
    await assert.rejects(ambientCredentials({ paths: join(directory, 'absent') }), {
      code: 'KubeconfigMissing',
      message: /found none of: ".*\/absent"; set --kubeconfig or KUBECONFIG/,
    });
    await assert.rejects(contextNames({ file: join(directory, 'absent') }), { code: 'KubeconfigInvalid' });
    await assert.rejects(fileCredentials(join(directory, 'absent')), { code: 'KubeconfigInvalid' });
    await assert.rejects(fileCredentials(await write('junk.yaml', '{')), { code: 'KubeconfigInvalid' });
    await assert.rejects(fileCredentials(await write('empty.yaml', '')), { code: 'KubeconfigInvalid' });
  });

  describe('from another party, as text', () => {
    const ca = { 'certificate-authority-data': base64(authority.certificate) };

    it('accepts inline CA, token, client certificate, server name, and namespace', async () => {
      const credentials = await inlineCredentials(
        kubeconfig({
          cluster: {
            ...ca,
            server: 'https://127.0.0.1:6443/',
            'tls-server-name': 'x',
            'insecure-skip-tls-verify': false,
          },
          user: {
            token: 't',
            'client-certificate-data': base64(alice.certificate),
            'client-key-data': base64(alice.key),
          },
          context: { namespace: 'n' },
        }),
      );
      assert.equal(credentials.server, 'https://127.0.0.1:6443');
      assert.equal(credentials.namespace, 'n');
      assert.equal(credentials.context, 'main');
      const { tls, headers } = await credentials.connectionAuth();
      assert.deepEqual(tls, { ca: authority.certificate, cert: alice.certificate, key: alice.key, servername: 'x' });
      assert.deepEqual(headers, { authorization: 'Bearer t' });
    });

    const refusedParts: [part: 'cluster' | 'user', field: string, value: unknown][] = [
      ['cluster', 'certificate-authority', '/etc/passwd'],
      ['cluster', 'proxy-url', 'http://proxy'],
      ['cluster', 'insecure-skip-tls-verify', true],
      ['cluster', 'server', 'http://one.test'],
      ['cluster', 'server', 'https://user:pass@one.test'],
      ['user', 'exec', { command: 'sh' }],
      ['user', 'auth-provider', { name: 'oidc' }],
      ['user', 'tokenFile', '/var/run/token'],
      ['user', 'token-file', '/var/run/token'],
      ['user', 'client-certificate', '/a'],
      ['user', 'client-key', '/a'],
      ['user', 'username', 'root'],
      ['user', 'password', 'x'],
      ['user', 'as', 'system:admin'],
      ['user', 'as-groups', ['system:masters']],
    ];
    for (const [part, name, value] of refusedParts) {
      it(`rejects ${name} ${JSON.stringify(value)}`, async () => {
        await assert.rejects(inlineCredentials(kubeconfig({ [part]: { [name]: value } })), (error: Error) => {
          assert.equal((error as Error & { code?: string }).code, 'KubeconfigForbidden');
          assert.match(error.message, new RegExp(name));
          return true;
        });
      });
    }

    const remedies: [part: 'cluster' | 'user', field: string, value: unknown, remedy: RegExp][] = [
      ['cluster', 'insecure-skip-tls-verify', true, /remove it; to trust a private CA, set certificate-authority-data/],
      ['user', 'password', 'x', /here: remove it, and set token, or client-certificate-data and client-key-data$/],
    ];
    for (const [part, name, value, remedy] of remedies) {
      it(`names what to do about ${name} of the ${part}`, () =>
        assert.rejects(inlineCredentials(kubeconfig({ [part]: { [name]: value } })), remedy));
    }

    const invalid: [what: string, text: string, code: string][] = [
      ['no YAML', '{', 'KubeconfigInvalid'],
      ['a list', '[]', 'KubeconfigInvalid'],
      ['an empty text', '', 'KubeconfigInvalid'],
      ['no contexts', 'current-context: main', 'KubeconfigContextNotFound'],
      ['no current context', kubeconfig({}).replace('current-context: main', ''), 'KubeconfigContextNotFound'],
      ['an odd context', 'current-context: a\ncontexts: [{name: a, context: 3}, null, 7]', 'KubeconfigContextNotFound'],
      ['a cluster that is not there', kubeconfig({ context: { cluster: 'x' } }), 'KubeconfigInvalid'],
      ['a server that is no URL', kubeconfig({ cluster: { server: 'one' } }), 'KubeconfigInvalid'],
      ['a CA that is no PEM', kubeconfig({ cluster: { 'certificate-authority-data': 'AAAA' } }), 'KubeconfigInvalid'],
      ['a token with a newline inside', kubeconfig({ user: { token: 'a\nb' } }), 'KubeconfigInvalid'],
      ['a token that is a number', kubeconfig({ user: { token: 7 } }), 'KubeconfigInvalid'],
      [
        'a certificate without key',
        kubeconfig({ user: { 'client-certificate-data': base64(alice.certificate) } }),
        'KubeconfigInvalid',
      ],
      [
        'a key of another certificate',
        kubeconfig({
          user: { 'client-certificate-data': base64(alice.certificate), 'client-key-data': base64(bob.key) },
        }),
        'InvalidTlsData',
      ],
    ];
    for (const [what, text, code] of invalid) {
      it(`rejects ${what} with ${code}`, () => assert.rejects(inlineCredentials(text), { code }));
    }

    it('never shows a credential in its message', async () => {
      for (const text of ['token: hunter2\n  broken: [', kubeconfig({ user: { token: 'hunter2 x' } })]) {
        await assert.rejects(inlineCredentials(text), (error: Error) => !error.message.includes('hunter2'));
      }
    });
  });
});

describe('credentials over TLS', () => {
  let server: Server;
  let url: string;
  let transport: Transport | undefined;

  before(async () => {
    server = createServer(
      {
        cert: serving.certificate,
        key: serving.key,
        ca: authority.certificate,
        requestCert: true,
        rejectUnauthorized: true,
      },
      (request, response) => {
        const { subject } = (request.socket as TLSSocket).getPeerCertificate();
        response.end(JSON.stringify({ user: subject?.CN }));
      },
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  afterEach(() => transport?.close());

  const credentials = (identity = alice, ca = authority.certificate): Credentials => ({
    server: url,
    connectionAuth: () => Promise.resolve({ tls: { ca, cert: identity.certificate, key: identity.key }, headers: {} }),
  });
  const whoAmI = () => transport?.request({ method: 'GET', path: '/', retry: 'never' });

  it('keeps TLS connections', async () => {
    transport = new Transport(credentials(), { clock: systemClock });
    let connections = 0;
    const count = (): void => void connections++;
    server.on('secureConnection', count);
    for (let i = 0; i < 100; i++) assert.deepEqual(await whoAmI(), { user: 'alice' });
    server.off('secureConnection', count);
    assert.ok(connections <= 2, `${connections} TLS handshakes`);
  });

  it('uses a new client certificate', async () => {
    transport = new Transport(credentials(), { clock: systemClock });
    assert.deepEqual(await whoAmI(), { user: 'alice' });
    transport.update(credentials(bob));
    assert.deepEqual(await whoAmI(), { user: 'bob' });
  });

  it('sends nothing to a server with a certificate of another authority', async () => {
    transport = new Transport(credentials(alice, createAuthority('other').certificate), { clock: systemClock });
    await assert.rejects(whoAmI() ?? Promise.resolve(), (error) => error instanceof TransportError && error.notSent);
  });
});
