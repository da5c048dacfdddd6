import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { GatewayProcess } from '../../../sandbox/gateway-process.ts';
import { userRoles } from '../../../sandbox/installation.ts';
import type { Terminal } from '../../../sandbox/terminal.ts';
import { until } from '../../../sandbox/wait.ts';
import type { Grant } from '../../../src/api/access/grant.ts';
import { sessionLogPath } from '../../../src/api/gateway/names.ts';
import { commandLinesIn } from '../../support/command-lines.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';
import { Person } from '../../support/person.ts';
import { shown } from '../../support/shown-output.ts';

const page = 'docs/tasks/watch-sessions.md';

describe('the view of a session', () => {
  let stage: GatewayStage;
  let carol: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open((directory) => [`--recordings=${mkdtempSync(join(directory, 'recordings-'))}`]);
    carol = await Person.of(stage.plane, 'carol', ['auditors']);
    const auditor = (await userRoles(stage.plane)).find(({ metadata }) => metadata.name.endsWith('session-auditor'));
    await stage.plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(auditor) });
    const bind = scriptOf(page, 'kubectl create rolebinding').replace('-n payments', `-n ${stage.namespace}`);
    const bound = await runAsReader({ plane: stage.plane, folder: stage.plane.directory }, bind);
    assert.match(bound, shown('tasks/watch-sessions.md', 'created'));
    const what = { group: 'gateway.drawbridge.dev', resource: 'sessions', subresource: 'log' };
    const mayView = () => carol.may({ namespace: stage.namespace, verb: 'get', ...what });
    await until('carol to be allowed to view sessions', mayView, { timeoutMs: 30_000 });
  });
  after(async () => {
    await stage?.plane.kubectl(['delete', '--ignore-not-found', 'clusterrole/drawbridge-session-auditor']);
    await stage?.close();
  });

  const shell = async (session: Partial<NonNullable<Grant['session']>> = {}) => {
    const grant = await stage.grant({ over: { session: { via: 'Gateway', ...session } } });
    const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
    await terminal.shows(/[$#] /);
    return { grant, terminal, id: await sessionOf(grant) };
  };
  /** The newest session of the grant. */
  const sessionOf = ({ request }: StagedGrant): Promise<string> =>
    until(
      'the session to open',
      async () => {
        const lines = await stage.gateway.audit((line) => line['request'] === request && line.verdict === 'opened');
        return lines.at(-1)?.['session'] as string | undefined;
      },
      { timeoutMs: 30_000 },
    );
  /** Resolves once the session is over and its recording complete: the gateway may learn of the end after the client. */
  const whenRecorded = (id: string): Promise<unknown> =>
    until(
      'the recording to be complete',
      async () => (await stage.gateway.audit((line) => line['session'] === id && line['complete'] === true))[0],
      { timeoutMs: 30_000 },
    );
  const path = (id: string, resource: 'sessions' | 'recordings' = 'sessions'): string =>
    sessionLogPath(resource, stage.namespace, id);
  const view = (person: Person, id: string, resource: 'sessions' | 'recordings' = 'sessions'): Terminal =>
    stage.terminal(person, ['get', '--raw', path(id, resource)]);
  const viewed = (id: string) =>
    stage.gateway.audit((line) => line['session'] === id && line['what']['operation'] === 'GET');

  it('shows two viewers what the terminal shows from now on, its size, and how it ends', async () => {
    const { terminal, id } = await shell();
    terminal.write('echo before-$((40+2))\n');
    await terminal.shows(/^before-42/m);
    const views = [view(carol, id), view(carol, id)];
    for (const one of views) await one.shows(/"version":2/);
    terminal.write('echo after-$((40+3))\n');
    for (const one of views) {
      const text = await one.shows(/after-43/);
      assert.doesNotMatch(text, /before-42/);
      assert.doesNotMatch(text, /,"i",/);
    }
    terminal.write('exit 3\n');
    for (const one of views) {
      assert.equal(await one.exit(), 0, one.text);
      assert.match(one.text.trimEnd().split('\n').at(-1) ?? '', /,"m","the session ended with exit code 3"\]/);
    }
    assert.equal((await viewed(id)).length, 2);
  });

  it('ends with the reason when access ends', async () => {
    const { grant, terminal, id } = await shell();
    const watched = view(carol, id);
    await watched.shows(/"version":2/);
    await stage.revoke(grant);
    assert.equal(await watched.exit(), 0);
    assert.match(watched.text, /,"m","access ended at \d\d:\d\d UTC: Revoked"\]\r?\n$/);
    assert.equal(await terminal.exit(), 1);
  });

  it('has the size of the terminal, and a line in the journal before its first byte', async () => {
    const { terminal, id, grant } = await shell();
    const watched = view(carol, id);
    const text = await watched.shows(/\n/);
    const header = JSON.parse(text.split('\n')[0] ?? '') as Record<string, unknown>;
    assert.deepEqual([header['version'], header['title']], [2, id]);
    const [line] = await viewed(id);
    assert.deepEqual(
      [line?.event, line?.verdict, line?.who.user, line?.['request'], line?.['pod']],
      ['session', 'viewed', 'carol', grant.request, 'payments'],
    );
    terminal.write('exit\n');
    await watched.exit();
  });

  it('is denied by the API server to people without the permission, the user of the session among them', async () => {
    const { terminal, id } = await shell();
    for (const person of [stage.alice, stage.bob]) {
      const { status, body } = await person.call('GET', path(id));
      assert.equal(status, 403);
      assert.match(JSON.stringify(body), /cannot get resource \\"sessions\/log\\" in API group/);
    }
    assert.deepEqual(await viewed(id), []);
    terminal.write('exit\n');
    await terminal.exit();
  });

  it('is over after the session, and says how to play its recording', async () => {
    const { terminal, id } = await shell({ record: 'Required' });
    terminal.write('echo paid-$((40+2))\nexit\n');
    await terminal.exit();
    await whenRecorded(id);
    const { status, body } = await carol.call('GET', path(id));
    assert.equal(status, 404);
    assert.match(JSON.stringify(body), /is not open in namespace .*drawbridge sessions play/);
    const recording = view(carol, id, 'recordings');
    assert.equal(await recording.exit(), 0);
    assert.match(recording.text, /paid-42/);
    assert.deepEqual(
      (await viewed(id)).map((line) => [line.verdict, line.what.kind, line['code']]),
      [
        ['denied', 'Session', 'SessionNotOpen'],
        ['viewed', 'Recording', undefined],
      ],
    );
  });

  it('is not found in another namespace, nor is a recording of a session without one', async () => {
    const { terminal, id } = await shell();
    const elsewhere = sessionLogPath('sessions', 'default', id);
    assert.equal((await stage.plane.call('GET', elsewhere)).status, 404);
    const { body } = await carol.call('GET', path(id, 'recordings'));
    assert.match(JSON.stringify(body), /no recording of session/);
    terminal.write('exit\n');
    await terminal.exit();
  });

  it('takes at most eight viewers', async () => {
    const { terminal, id } = await shell();
    const views = Array.from({ length: 8 }, () => view(carol, id));
    for (const one of views) await one.shows(/"version":2/);
    const { status, body } = await carol.call('GET', path(id));
    assert.equal(status, 429);
    assert.match(JSON.stringify(body), /allowed are 8 for a session, and 64 for a replica of the gateway/);
    terminal.write('exit\n');
    for (const one of views) assert.equal(await one.exit(), 0);
  });

  it('does not slow a session down if its viewer does not read, and breaks off', async () => {
    const { terminal, id, grant } = await shell();
    const { binaries } = stage.plane;
    const viewer = spawn(binaries.kubectl, ['--kubeconfig', carol.kubeconfig, 'get', '--raw', path(id)], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const exited = once(viewer, 'exit');
    await until('the view to begin', async () => (await viewed(id)).length > 0, { timeoutMs: 30_000 });
    terminal.write('head -c 40000000 /dev/zero | tr "\\0" x; exit\n');
    assert.equal(await terminal.exit(), 0);
    assert.ok(Number((await stage.ended(grant))['bytesOut']) >= 40_000_000);
    const seen = await text(viewer.stdout);
    const [code] = (await exited) as [number];
    assert.equal(code, 1);
    assert.doesNotMatch(seen.slice(-2000), /the session ended/);
  });

  it('cannot be reached by another path, method, or protocol', async () => {
    const { terminal, id } = await shell({ record: 'Required' });
    const [live, stored] = [path(id), path(id, 'recordings')];
    const base = live.slice(0, live.indexOf('/sessions/'));
    for (const [method, target] of [
      ['GET', `${base}/sessions/${id}`],
      ['GET', `${base}/sessions/${id}/proxy`],
      ['GET', `${live}/more`],
      ['GET', `${stored}%2f..%2f..%2f..%2fother`],
      ['GET', `${base}/recordings/..%2f..%2f..%2fetc/log`],
      ['GET', `${base}/recordings/%2e%2e/log`],
      ['GET', `${base}/recordings/${id.toUpperCase()}/log`],
      ['GET', `${base}/recordings/${id}.cast/log`],
      ['GET', `${base}/recordings/${id}%00/log`],
      ['POST', live],
      ['DELETE', stored],
    ] as const) {
      const { status, body } = await stage.plane.call(method, target);
      assert.ok([400, 403, 404, 405].includes(status), `${method} ${target}: ${status} ${JSON.stringify(body)}`);
    }
    assert.equal((await carol.open(live)).status, 400);
    terminal.write('exit\n');
    await terminal.exit();
  });

  describe('of drawbridge sessions', () => {
    /** The line of docs/tasks/watch-sessions.md about this command, for the session. */
    const lineOf = (command: string, id = ''): string[] => {
      const found = commandLinesIn(readFileSync(page, 'utf8')).find((words) => words[1] === command) ?? [];
      return found.flatMap((word, at) =>
        word === '-n' || found[at - 1] === '-n' ? [] : /^6f0c/.test(word) ? id : word,
      );
    };
    const hostile = "printf 'A\\033[6nB\\033]52;c;ZXZpbA==\\007C\\033[31mD\\n'\n";

    it('list shows who is connected, for people and for programs, and kill ends it and may be repeated', async () => {
      const { terminal, id } = await shell({ record: 'Required' });
      const list = stage.client(carol, lineOf('list'));
      assert.equal(await list.exit(), 0, list.text);
      assert.match(list.text, shown('tasks/watch-sessions.md', 'RECORD'));
      assert.ok(list.text.includes(id));
      const json = stage.client(carol, ['sessions', 'list', '-o', 'json']);
      await json.exit();
      const { items } = JSON.parse(json.text) as { items: { metadata: { name: string } }[] };
      assert.ok(items.some(({ metadata }) => metadata.name === id));
      const kill = stage.client(carol, lineOf('kill', id));
      assert.equal(await kill.exit(), 0, kill.text);
      assert.match(kill.text, shown('tasks/watch-sessions.md', 'ended: exec'));
      await terminal.shows(/the session ended at \d\d:\d\d UTC: Killed/);
      const again = stage.client(carol, ['sessions', 'kill', id]);
      assert.equal(await again.exit(), 0);
      assert.match(again.text, /is not open in namespace .*; nothing to end/);
    });

    it('tail shows it until its end, without what a terminal would answer', async () => {
      const { terminal, id, grant } = await shell();
      const tail = stage.client(carol, lineOf('tail', id));
      await until('the view to begin', async () => (await viewed(id)).length > 0, { timeoutMs: 30_000 });
      terminal.write(hostile);
      const text = await tail.shows(/ABC/);
      assert.ok(text.includes('ABC\u001b[31mD'), JSON.stringify(text));
      assert.ok(!text.includes('\u001b]52'), JSON.stringify(text));
      await stage.revoke(grant);
      assert.equal(await tail.exit(), 0);
      assert.match(tail.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Revoked/);
    });

    it('tail says that a session is over, and play replays it faster', async () => {
      const { terminal, id } = await shell({ record: 'Required' });
      terminal.write('echo paid-$((40+2))\nexit\n');
      await terminal.exit();
      await whenRecorded(id);
      const tail = stage.client(carol, ['sessions', 'tail', id]);
      assert.equal(await tail.exit(), 5);
      assert.match(tail.text, /is not open in namespace .*; if it was recorded, play it: drawbridge sessions play/s);
      const replay = stage.client(carol, lineOf('play', id));
      assert.equal(await replay.exit(), 0);
      assert.match(replay.text, /\[drawbridge\] this session is recorded.*^paid-42/ms);
    });

    it('are denied to people without the ClusterRole, which they name', async () => {
      const { terminal, id } = await shell({ record: 'Required' });
      for (const args of [['list'], ['tail', id], ['play', id], ['kill', id]]) {
        const denied = stage.client(stage.bob, ['sessions', ...args]);
        assert.equal(await denied.exit(), 3);
        assert.match(denied.text, /denied: .*ask an administrator to bind the ClusterRole drawbridge-session-auditor/s);
      }
      terminal.write('exit\n');
      await terminal.exit();
    });

    describe('through another replica', () => {
      let holder: GatewayProcess;
      before(async function () {
        this.timeout(60_000);
        holder = stage.gateway;
      });
      after(() => holder.stop());

      it('show the session, with a line in the journal of the replica that was called', async () => {
        const { terminal, id, grant } = await shell();
        // The API server calls this one from now on.
        stage.gateway = await GatewayProcess.start(stage.plane, { namespace: stage.namespace });
        const tail = stage.client(carol, ['sessions', 'tail', id]);
        await until('the view to begin', async () => (await viewed(id)).length > 0, { timeoutMs: 30_000 });
        terminal.write('echo far-$((40+2))\n');
        await tail.shows(/^far-42/m);
        const [line] = await viewed(id);
        assert.deepEqual([line?.who.user, line?.['request'], line?.['pod']], ['carol', grant.request, 'payments']);
        assert.deepEqual(await holder.audit((found) => found['session'] === id && found.what.operation === 'GET'), []);
        await stage.revoke(grant);
        assert.equal(await tail.exit(), 0);
        assert.match(tail.text, /\[drawbridge\] access ended at \d\d:\d\d UTC: Revoked/);
      });

      it('end with the replica that holds the session, and do not take that for the end of the session', async () => {
        const grant = await stage.grant();
        const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
        await terminal.shows(/[$#] /);
        const id = await sessionOf(grant);
        const before = stage.gateway;
        stage.gateway = await GatewayProcess.start(stage.plane, { namespace: stage.namespace });
        const tail = stage.client(carol, ['sessions', 'tail', id]);
        await until('the view to begin', async () => (await viewed(id)).length > 0, { timeoutMs: 30_000 });
        await before.kill();
        assert.equal(await tail.exit(), 1);
        assert.match(tail.text, /lost the view: .*; the session may still be open/);
        const again = stage.client(carol, ['sessions', 'tail', id]);
        assert.equal(await again.exit(), 1);
        assert.match(again.text, /is open in replica \S+ of the gateway, which this replica cannot reach/);
      });
    });
  });
});
