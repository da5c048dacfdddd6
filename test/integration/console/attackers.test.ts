import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import type { ConsoleProcess } from '../../../sandbox/console-process.ts';
import { portOf } from '../../../sandbox/ports.ts';
import { until } from '../../../sandbox/wait.ts';
import { paths, type RunCall, tokenHeader } from '../../../src/client/console/wire.ts';
import { program } from '../../support/client.ts';
import { ConsoleStage, template } from '../../support/console-stage.ts';

const rebinding = 'rebinding.example';

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A call by another program of this machine. */
async function call(
  { origin }: Pick<ConsoleProcess, 'origin'>,
  path: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const { port } = new URL(origin);
  const sent = httpRequest({ host: '127.0.0.1', port, path, method, headers });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  // Without the token, only the head of a stream is of interest.
  for await (const chunk of response) {
    text += String(chunk);
    if (path.startsWith(paths.live)) break;
  }
  return { status: response.statusCode ?? 0, body: text };
}

describe('the console against attackers', function () {
  this.timeout(60_000);
  let stage: ConsoleStage;
  let alices: ConsoleProcess;
  let calls: number;

  const run = (command: unknown, headers: Record<string, string> = { [tokenHeader]: alices.token }): Promise<Answer> =>
    call(alices, paths.run, { method: 'POST', headers, body: JSON.stringify(command) });
  /** What alice's credentials did since the last mark. */
  const madeBy = (user: string) => stage.access.plane.auditLog.calls({ user, since: calls });

  before(async function () {
    this.timeout(240_000);
    stage = await ConsoleStage.open({ browserFlags: [`--host-resolver-rules=MAP ${rebinding} 127.0.0.1`] });
    alices = await stage.console(stage.alice);
  });
  after(() => stage?.close());
  beforeEach(() => {
    calls = stage.access.plane.auditLog.mark();
  });

  describe('who are other programs of this machine', () => {
    const everyPath = Object.values(paths);

    it('get nothing but the files of the page without the token', async () => {
      for (const path of everyPath) {
        for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
          const { status } = await call(alices, path, { method });
          assert.ok(status === 401 || status === 405, `${method} ${path}: ${status}`);
        }
      }
      assert.equal((await call(alices, '/mine')).status, 200);
    });

    it('get nothing with a wrong token, or with the token elsewhere', async () => {
      const { token } = alices;
      const wrong = [token.slice(0, -1), `${token}A`, token.toLowerCase(), 'A'.repeat(43), '', `${token}, ${token}`];
      for (const one of wrong) {
        const { status } = await call(alices, paths.start, { headers: { [tokenHeader]: one } });
        assert.equal(status, 401, one);
      }
      const elsewhere: Record<string, string>[] = [{ cookie: `token=${token}` }, { authorization: `Bearer ${token}` }];
      for (const headers of elsewhere) assert.equal((await call(alices, paths.start, { headers })).status, 401);
      assert.equal((await call(alices, `${paths.start}?${tokenHeader}=${token}`)).status, 401);
    });

    it('reach the port at no other address', async () => {
      const port = Number(new URL(alices.origin).port);
      const others = Object.values(networkInterfaces()).flatMap((found = []) => found.map(({ address }) => address));
      for (const host of [...others.filter((address) => address !== '127.0.0.1'), '127.0.0.2']) {
        const socket = connect({ host, port });
        const outcome = await Promise.race([
          once(socket, 'connect').then(() => 'connected'),
          once(socket, 'error').then(() => 'refused'),
        ]).catch(() => 'refused');
        socket.destroy();
        assert.equal(outcome, 'refused', host);
      }
    });

    it('cannot read the token from a file or a command line', async () => {
      const { child, opened } = await openedConsole(stage);
      try {
        const file = opened.replace(/^file:\/\//, '');
        const page = readFileSync(file, 'utf8');
        const [url = '', origin = '', token = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/#([\w-]{43})/.exec(page) ?? [];
        assert.notEqual(url, '', page);
        assert.equal(statSync(file).mode & 0o777, 0o600);
        assert.equal(statSync(dirname(file)).mode & 0o777, 0o700);
        assert.ok(!commandLines().some((line) => line.includes(token)));
        const answer = await call({ origin }, paths.start, { headers: { [tokenHeader]: token } });
        assert.equal(answer.status, 200, answer.body);
        await until('the file to be gone after the first call', () => !existsSync(file), { timeoutMs: 10_000 });
      } finally {
        child.kill('SIGINT');
        await once(child, 'exit');
      }
    });

    it('cannot use a URL of a console that has ended', async () => {
      const first = await stage.console(stage.carol);
      const { port } = new URL(first.origin);
      await first.stop();
      await assert.rejects(call(first, paths.start, { headers: { [tokenHeader]: first.token } }), /ECONNREFUSED/);
      const second = await stage.console(stage.carol, '--port', port);
      assert.equal(second.origin, first.origin);
      assert.equal((await call(second, paths.start, { headers: { [tokenHeader]: first.token } })).status, 401);
      assert.equal((await call(second, paths.start, { headers: { [tokenHeader]: second.token } })).status, 200);
      await second.stop();
    });
  });

  describe('who are pages from elsewhere', () => {
    let elsewhere: Server;
    let context: BrowserContext;
    let page: Page;

    before(async () => {
      elsewhere = createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>elsewhere</title>');
      }).listen(0, '127.0.0.1');
      await once(elsewhere, 'listening');
    });
    after(() => elsewhere?.close());
    beforeEach(async () => {
      // The victim's browser: the console is open in it, too.
      const victim = await stage.visit(alices);
      context = victim.context;
      page = await context.newPage();
      await page.goto(`http://127.0.0.1:${portOf(elsewhere)}/`);
    });
    afterEach(async () => {
      stage.takeProblems();
      await context.close();
    });

    /** Runs a script with the origin of the console and the token, as if the attacker had got that. */
    const attack = <T>(script: string): Promise<T> =>
      page.evaluate(`(async (origin, token, header) => { ${script} })(
        ${JSON.stringify(alices.origin)}, ${JSON.stringify(alices.token)}, ${JSON.stringify(tokenHeader)})`) as Promise<T>;
    const created: RunCall = {
      command: 'request pod',
      args: [template],
      flags: { reason: 'INC-1 stolen', name: 'stolen' },
    };
    const nothingWasCreated = async (): Promise<void> => {
      assert.equal(await stage.access.read('PodAccessRequest', 'stolen'), undefined);
      const writes = madeBy('alice').filter(({ verb, resource }) => verb === 'create' && /requests$/.test(resource));
      assert.deepEqual(writes, []);
    };

    it('cannot call it with fetch, even with the token', async () => {
      const outcome = await attack<string[]>(`
        const tries = [{}, { headers: { [header]: token } }, { credentials: 'include', mode: 'no-cors' }];
        return Promise.all(tries.map((options) => fetch(origin + '/api/start', options).then(
          async (response) => response.type + ' ' + response.status + ' ' + await response.text(), () => 'refused')));`);
      for (const one of outcome) assert.match(one, /^(refused|opaque 0 )$/);
      const post = await attack<string[]>(`
        const body = ${JSON.stringify(JSON.stringify(created))};
        const tries = [{ mode: 'no-cors' }, { headers: { [header]: token } }, { keepalive: true, mode: 'no-cors' }];
        navigator.sendBeacon(origin + '/api/run', body);
        return Promise.all(tries.map((options) => fetch(origin + '/api/run', { method: 'POST', body, ...options }).then(
          async (response) => response.type + ' ' + response.status + ' ' + await response.text(), () => 'refused')));`);
      for (const one of post) assert.match(one, /^(refused|opaque 0 )$/);
      await nothingWasCreated();
    });

    it('cannot post a form to it', async () => {
      const text = JSON.stringify({ ...created, x: '' }).slice(0, -2);
      await attack(`
        const form = document.createElement('form');
        Object.assign(form, { method: 'post', action: origin + '/api/run', enctype: 'text/plain' });
        const field = document.createElement('input');
        Object.assign(field, { name: ${JSON.stringify(text)}, value: '"}' });
        form.append(field);
        document.body.append(form);
        form.submit();`);
      await page.waitForURL(`${alices.origin}/api/run`);
      assert.match((await page.locator('body').textContent()) ?? '', /comes from another page/);
      await nothingWasCreated();
    });

    it('cannot show it in a frame', async () => {
      await attack(`
        const frame = document.createElement('iframe');
        frame.src = origin + '/mine';
        document.body.append(frame);
        await new Promise((resolve) => { frame.onload = resolve; });`);
      await until('the frame to be blocked', () => page.frames()[1]?.url().startsWith('chrome-error:'), {
        timeoutMs: 10_000,
      });
    });

    it('has no hold on it as its opener', async () => {
      const [opened] = await Promise.all([
        context.waitForEvent('page'),
        attack(`globalThis.opened = window.open(origin + '/mine'); return true;`),
      ]);
      await opened.getByRole('navigation').waitFor();
      assert.equal(await opened.evaluate('window.opener'), null);
      assert.equal(await attack(`return globalThis.opened.closed;`), true);
    });

    it('cannot make its person watch a session, of which the journal has a line', async () => {
      const path = `/player?from=sessions&namespace=${stage.namespace}&name=x`;
      const [opened] = await Promise.all([
        context.waitForEvent('page'),
        attack(`window.open(origin + '${path}', 'alice: exec'); return true;`),
      ]);
      await opened.getByRole('button', { name: 'Show' }).waitFor();
    });

    it('cannot take the console away from its person by a link with another token', async () => {
      const opened = await context.newPage();
      await opened.goto(`${alices.origin}/mine#${'A'.repeat(43)}`);
      await opened.getByRole('navigation').waitFor();
      const again = await context.newPage();
      await again.goto(`${alices.origin}/mine`);
      await again.getByRole('navigation').waitFor();
    });

    it('cannot open a WebSocket or a stream of events, nor load its files', async () => {
      const outcome = await attack<string[]>(`
        const ended = (start) => new Promise((resolve) => {
          const one = start();
          one.onopen = one.onload = () => resolve('open');
          one.onerror = () => resolve('error');
          if (one instanceof Element) document.head.append(one);
        });
        const script = (type, src) => Object.assign(document.createElement('script'), { type, src });
        return Promise.all([
          ended(() => new WebSocket(origin.replace('http', 'ws') + '/api/live')),
          ended(() => new EventSource(origin + '/api/live')),
          ended(() => script('module', origin + '/main.js')),
          ended(() => Object.assign(document.createElement('link'), { rel: 'stylesheet', href: origin + '/main.css' })),
        ]);`);
      assert.deepEqual(outcome, ['error', 'error', 'error', 'error']);
    });

    it('gets nothing when its name is bound to this machine', async () => {
      const { port } = new URL(alices.origin);
      const response = await page.goto(`http://${rebinding}:${port}/mine`);
      assert.equal(response?.status(), 421);
      const status = await attack<number>(`
        const answer = await fetch('/api/start', { headers: { [header]: token } });
        return answer.status;`);
      assert.equal(status, 421);
      for (const host of [`localhost:${port}`, '127.0.0.1', `[::1]:${port}`, `${rebinding}:${port}`]) {
        const headers = { host, [tokenHeader]: alices.token };
        assert.equal((await call(alices, paths.start, { headers })).status, 421, host);
      }
    });

    it('gets nothing with the token from another site, as the headers of the browser tell', async () => {
      for (const headers of [
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'none' },
        { origin: 'null' },
        { origin: `http://${rebinding}` },
      ] as Record<string, string>[])
        assert.equal(
          (await call(alices, paths.start, { headers: { ...headers, [tokenHeader]: alices.token } })).status,
          403,
          JSON.stringify(headers),
        );
    });
  });

  describe('who have the token', () => {
    const refused: readonly (readonly [what: string, call: object])[] = [
      ['a command that it does not offer', { command: 'completion' }],
      ['a shell', { command: 'exec', args: ['stolen', 'sh'] }],
      ['another command of sessions', { command: 'sessions play', args: ['x'] }],
      ['a name of Object.prototype', { command: 'constructor' }],
      ['a file as a word', { command: 'audit verify', args: ['/etc/passwd'] }],
      ['a file as a word of a report', { command: 'audit report', args: ['/etc/passwd'] }],
      ['a journal', { command: 'who', flags: { journal: '/etc/passwd' } }],
      ['a folder of recordings', { command: 'audit verify', flags: { recordings: '/' } }],
      ['heads in a file', { command: 'audit verify', flags: { heads: '/etc/passwd' } }],
      ['a flag of the connection', { command: 'templates', flags: { kubeconfig: '/etc/passwd' } }],
      ['impersonation', { command: 'templates', flags: { as: 'admin' } }],
      ['a group', { command: 'templates', flags: { 'as-group': 'system:masters' } }],
      ['another form of output', { command: 'templates', flags: { output: 'table' } }],
      ['a flag as a word', { command: 'templates', args: ['--as=admin'] }],
      ['a flag as a word after --', { command: 'explain', args: ['--', '--as=admin'] }],
      ['standard input', { command: 'audit report', args: ['-'] }],
      ['a flag in a name of a flag', { command: 'revoke', args: ['x'], flags: { 'reason=x --as': 'admin' } }],
      ['a flag as the namespace', { command: 'templates', namespace: '--as=admin' }],
      ['a path as the namespace', { command: 'templates', namespace: '../../secrets' }],
      ['a namespace with words', { command: 'templates', namespace: 'x --as=admin' }],
      ['values that are no texts', { command: 'approve', args: ['x'], flags: { max: ['1h', '--as=admin'] } }],
      ['words that are no texts', { command: 'approve', args: [['x']] }],
      ['a program to run', { command: 'request pod', args: [template], flags: { exec: true } }],
    ];

    // With a journal, the commands about one would run.
    before(async () => {
      const headers = { [tokenHeader]: alices.token };
      const body = readFileSync(stage.access.server.auditFile, 'utf8');
      const { status } = await call(alices, `${paths.journal}?name=access.jsonl`, { method: 'PUT', headers, body });
      assert.equal(status, 200);
    });

    for (const [what, command] of refused)
      it(`cannot pass ${what}`, async () => {
        const { status, body } = await run(command);
        assert.equal(status, 400, body);
        const reads = madeBy('alice').filter(({ resource }) => resource !== 'selfsubjectreviews');
        assert.deepEqual(reads, []);
      });

    it('cannot send what is no command', async () => {
      const headers = { [tokenHeader]: alices.token };
      for (const body of ['', '{', 'null', '[]', '"templates"', '{"__proto__":{"command":"templates"}}'])
        assert.equal((await call(alices, paths.run, { method: 'POST', headers, body })).status, 400, body);
      const large = await call(alices, paths.run, { method: 'POST', headers, body: 'x'.repeat(70_000) });
      assert.equal(large.status, 413);
    });

    it('cannot make a value another flag or a command of a shell', async () => {
      const words = `x' --as=admin $(id) ; id`;
      const { status, body } = await run({ command: 'revoke', args: ['none'], flags: { reason: words } });
      assert.equal(status, 200, body);
      const { line } = JSON.parse(body) as { line: string };
      assert.ok(line.includes(`'--reason=x'\\'' --as=admin $(id) ; id'`), line);
      assert.ok(madeBy('alice').every(({ impersonated }) => impersonated === undefined));
    });

    it('cannot leave the folder of the page, or name a file of the journal outside its own', async () => {
      const headers = { [tokenHeader]: alices.token };
      for (const path of [
        '/../etc/passwd',
        '/..%2f..%2fetc%2fpasswd',
        '/%2e%2e/%2e%2e/etc/passwd',
        '/main.js/../x',
        '//etc/passwd',
      ]) {
        const { status, body } = await call(alices, path, { headers });
        assert.ok(status >= 400 || body.startsWith('<!doctype html>'), `${path}: ${status}`);
        assert.ok(!body.includes('root:'), path);
      }
      for (const name of ['../stolen', '/tmp/stolen', 'a/b', '..', '', '.', 'x\0y']) {
        const path = `${paths.journal}?name=${encodeURIComponent(name)}`;
        await call(alices, path, { method: 'PUT', headers, body: '{"chain":"x"}\n' });
      }
      const escaped = ['/tmp/stolen', join(stage.access.plane.directory, 'stolen')];
      for (const path of escaped) assert.throws(() => statSync(path), /ENOENT/);
      await call(alices, paths.journal, { method: 'DELETE', headers });
    });

    it('cannot read Secrets, or enter a pod', async () => {
      const headers = { [tokenHeader]: alices.token };
      const tries = [
        `${paths.request}?namespace=${stage.namespace}&kind=Secret&name=x`,
        `${paths.request}?namespace=${stage.namespace}&kind=secrets&name=x`,
        `${paths.request}?namespace=..%2F..&kind=PodAccessRequest&name=..%2Fsecrets`,
        `${paths.request}?namespace=${stage.namespace}%2Fsecrets&kind=PodAccessRequest&name=x`,
        `${paths.cast}?from=secrets&namespace=${stage.namespace}&name=x`,
        `${paths.cast}?from=sessions&namespace=${stage.namespace}&name=..%2F..%2Fsecrets`,
        `${paths.live}?namespace=..%2Fsecrets`,
        `${paths.verdict}?namespace=..&name=..%2F..%2Fetc%2Fpasswd`,
        `${paths.verdict}?namespace=..%2F..&name=x`,
        `${paths.cast}?from=recordings&namespace=..&name=x`,
      ];
      for (const path of tries) {
        const { status, body } = await call(alices, path, { headers });
        assert.ok(status >= 400 && status < 500, `${path}: ${status} ${body}`);
      }
      const forbidden = madeBy('alice').filter(({ resource }) => /^secrets|^pods\/(?!log)|proxy/.test(resource));
      assert.deepEqual(forbidden, []);
    });
  });
});

/** Starts a console with a program in place of the browser. Resolves with what that is called with. */
async function openedConsole(stage: ConsoleStage): Promise<{ child: ChildProcess; opened: string }> {
  const { directory } = stage.access.plane;
  const folder = join(directory, 'browser');
  const log = join(folder, 'opened');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'xdg-open'), `#!/bin/sh\nprintf '%s\\n' "$@" >${log}\n`, { mode: 0o755 });
  const child = spawn(process.execPath, [program, 'console', '-n', stage.namespace, '--port', '0'], {
    env: {
      PATH: `${folder}:${process.env['PATH']}`,
      HOME: directory,
      KUBECONFIG: stage.alice.kubeconfig,
      DISPLAY: ':0',
      TMPDIR: folder,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const isOpened = (): string | false => existsSync(log) && readFileSync(log, 'utf8').trim();
  const opened = await until('the browser to be opened', () => isOpened() || undefined, { timeoutMs: 15_000 });
  return { child, opened };
}

/** The command lines of all processes of this machine, as every user can read them. */
const commandLines = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        return '';
      }
    });
