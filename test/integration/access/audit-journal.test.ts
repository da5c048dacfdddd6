import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { until } from '../../../sandbox/wait.ts';
import { headNames } from '../../../src/audit/head.ts';
import type { ChainReport, VerifyReport } from '../../../src/audit/verify/report.ts';
import { podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { commandsOf, runAsReader } from '../../support/page-commands.ts';
import { Person } from '../../support/person.ts';
import { shown } from '../../support/shown-output.ts';

const program = fileURLToPath(new URL('../../../dist/drawbridge.js', import.meta.url));
const configMapUrl = `/api/v1/namespaces/drawbridge-system/configmaps/${headNames.access.heads}`;

describe('the audit journal', () => {
  let stage: AccessStage;
  /** Journals so far, oldest first. */
  const files: string[] = [];

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open({ flags: ['--identity=drawbridge-x'] });
    files.push(stage.server.auditFile);
  });

  after(() => stage?.close());

  const verify = (...args: string[]): Promise<{ code: number; out: string }> =>
    new Promise((resolve, reject) => {
      execFile(process.execPath, [program, 'audit', 'verify', ...args], (error, out, err) => {
        const code = error ? Number(error.code) : 0;
        if (code === 2) reject(new Error(err));
        else resolve({ code, out });
      });
    });
  const live = (): string[] => [...files, '--partial', `--kubeconfig=${stage.plane.adminKubeconfig}`];
  const report = async (...args: string[]): Promise<VerifyReport> =>
    JSON.parse((await verify(...args, '-o', 'json')).out) as VerifyReport;
  /** Selects the chain of this server; the plane may have heads of earlier servers, without their journals. */
  const ofServer = (chains: readonly ChainReport[]): ChainReport | undefined =>
    chains.find(({ replica, last }) => replica === 'drawbridge-x' && last > 0);
  const linesOf = (file: string): string[] => readFileSync(file, 'utf8').trimEnd().split('\n');

  /** Resolves once heads cover every line and the verifier finds no problem. */
  const proven = async (): Promise<VerifyReport> => {
    let last: VerifyReport | undefined;
    const provenReport = async (): Promise<VerifyReport | false> => {
      // A new plane has no signed heads.
      if ((await stage.plane.probe(configMapUrl)).status === 404) return false;
      last = await report(...live());
      assert.deepEqual(last.findings, []);
      return last.chains.every(({ unproven }) => unproven === 0) && last;
    };
    try {
      return await until('heads for every line', provenReport, { timeoutMs: 60_000, everyMs: 500 });
    } catch (error) {
      throw new Error(`${(error as Error).message}: ${JSON.stringify(last)}`);
    }
  };
  const reopened = async (): Promise<void> => {
    const count = async (): Promise<number> => (await stage.server.log()).split('audit journal reopened').length;
    const before = await count();
    stage.server.signal('SIGHUP');
    await until('the journal to be reopened', async () => (await count()) > before, { timeoutMs: 20_000, everyMs: 50 });
  };

  it('is proven by heads in the cluster, which the server writes with its own permissions', async () => {
    const request = await stage.createReady(stage.alice, podRequest('one', { duration: '10m' }));
    assert.equal((await stage.create(stage.bob, podRequest('two'))).status, 403);
    await stage.alice.call('DELETE', stage.urlOf(request.kind, 'one'));
    await stage.closed(request);
    const { verdict, chains, keys } = await proven();
    const ours = ofServer(chains);
    assert.deepEqual([verdict, ours?.first, ours?.last], ['intact', 1, linesOf(stage.server.auditFile).length]);
    assert.ok(keys.length > 0);
    const folder = mkdtempSync(join(stage.plane.directory, 'reader-'));
    symlinkSync(stage.plane.adminKubeconfig, join(folder, 'admin.yaml'));
    const lines = linesOf(stage.server.auditFile).map((line) => `${line}\n`);
    writeFileSync(join(folder, 'audit.log.1'), lines.slice(0, 2).join(''));
    writeFileSync(join(folder, 'audit.log'), lines.slice(2).join(''));
    const [plain, zipped] = commandsOf('docs/tasks/verify-the-audit-journal.md', 'audit.log.1');
    const rotate = 'mv audit.log.1 audit.log.2\ngzip audit.log.2\n: > audit.log.1';
    for (const command of [plain, `${rotate}\n${zipped}`]) {
      // The plane may have heads of earlier servers.
      const found = await runAsReader({ plane: stage.plane, folder }, `${command} --partial`);
      const given = found.replace(/^.*: the given files contain no line of it\n/gm, '');
      assert.match(given, shown('tasks/verify-the-audit-journal.md', 'INTACT'));
    }
    console.log(`      ${ours?.last} lines, signed to ${ours?.signedTo}, by one of ${keys.join(' ')}`);
  });

  it('keeps the group that allowed the requester, even among many groups', async () => {
    const groups = [...Array.from({ length: 40 }, (_, index) => `team-${index}`), 'devs'];
    const dave = await Person.of(stage.plane, 'dave', groups);
    const request = await stage.createReady(dave, podRequest('many-groups', { duration: '10m' }));
    for (const event of ['admission', 'grant']) {
      const line = await stage.auditLine(event, (one) => one.event === event && one.what.name === 'many-groups');
      assert.ok(line.who.groups?.includes('devs'), `${event}: ${line.who.groups}`);
    }
    await dave.call('DELETE', stage.urlOf(request.kind, 'many-groups'));
    await stage.closed(request);
  });

  it('does not write heads while nothing happens', async () => {
    const version = async (): Promise<unknown> =>
      ((await stage.plane.probe(configMapUrl)).body as { metadata: { resourceVersion: string } }).metadata
        .resourceVersion;
    await proven();
    const before = await version();
    // Longer than the five seconds between two checks of the server.
    await sleep(6000);
    assert.equal(await version(), before);
  });

  const changes: [string, (lines: string[]) => string[], RegExp][] = [
    [
      'a changed line',
      (all) => all.map((line, i) => (i === 1 ? line.replace('"time":"2', '"time":"1') : line)),
      /:2: Changed/,
    ],
    ['a missing line', (all) => all.filter((_, i) => i !== 1), /:2: Missing/],
    ['a line that was moved', (all) => [...all.slice(1), ...all.slice(0, 1)], /OutOfOrder/],
    ['a missing end', (all) => all.slice(0, -1), /^Missing: .* at the end/m],
    ['an added line', (all) => [...all, (all[0] ?? '').replace('"seq":1', '"seq":99')], /Changed/],
  ];
  it('reveals changes of a copy, by heads from kubectl', async () => {
    await proven();
    const heads = join(stage.plane.directory, 'heads.json');
    const copy = join(stage.plane.directory, 'audit-copy.jsonl');
    const get = ['get', 'configmap', headNames.access.heads, '-n', 'drawbridge-system', '-o', 'json'];
    writeFileSync(heads, (await stage.plane.kubectl(get)).stdout);
    const lines = linesOf(stage.server.auditFile);
    const check = (changed: readonly string[]): Promise<{ code: number; out: string }> => {
      writeFileSync(copy, `${changed.join('\n')}\n`);
      return verify(copy, '--heads', heads, '--partial');
    };
    const unchanged = await check(lines);
    assert.equal(unchanged.code, 0, unchanged.out);
    for (const [title, change, finding] of changes) {
      const changed = change(lines);
      assert.notDeepEqual(changed, lines, title);
      const { code, out } = await check(changed);
      assert.equal(code, 1, `${title}: ${out}`);
      assert.match(out, finding, title);
    }
  });

  it('continues in the next file after a rotation, and the verifier accepts files in any order', async () => {
    const { auditFile } = stage.server;
    renameSync(auditFile, `${auditFile}.1`);
    await reopened();
    files.splice(0, 1, auditFile, `${auditFile}.1`);
    assert.equal((await stage.create(stage.bob, podRequest('three'))).status, 403);
    const { chains } = await proven();
    assert.equal(ofServer(chains)?.first, 1);
  });

  it('on a full disk: no new grant opens, open grants end, and a later line has the number of lost lines', async () => {
    const { auditFile } = stage.server;
    const request = await stage.createReady(stage.alice, podRequest('open', { duration: '10m' }));
    const pod = request.status?.podName ?? '';
    assert.equal(await stage.alice.mayExec(stage.namespace, pod), true);
    renameSync(auditFile, `${auditFile}.2`);
    files.push(`${auditFile}.2`);
    symlinkSync('/dev/full', auditFile);
    try {
      await reopened();
      const { status, body } = await stage.create(stage.alice, podRequest('refused', { duration: '10m' }));
      assert.equal(status, 503, JSON.stringify(body));
      assert.match((body as { message: string }).message, /AuditUnavailable/);
      const patched = await stage.alice.call('PATCH', stage.urlOf(request.kind, 'open'), { spec: { revoked: true } });
      assert.equal(patched.status, 200, JSON.stringify(patched.body));
      await stage.closed(request);
      assert.equal(await stage.alice.mayExec(stage.namespace, pod), false);
    } finally {
      rmSync(auditFile);
    }
    await reopened();
    await stage.closed(await stage.createReady(stage.alice, podRequest('again', { duration: '6s' })));
    const ours = ofServer((await proven()).chains);
    assert.ok((ours?.lost ?? 0) >= 3, JSON.stringify(ours));
  });

  it('is complete after a graceful stop, and the next process begins another chain', async () => {
    await stage.stop();
    const stopped = await report(...live());
    assert.deepEqual([stopped.verdict, stopped.chains.some(({ unproven }) => unproven > 0)], ['intact', false]);
    await stage.start({ installation: stage.server.installation, flags: ['--identity=drawbridge-y'] });
    files.push(stage.server.auditFile);
    assert.equal((await stage.create(stage.bob, podRequest('four'))).status, 403);
    const { chains } = await proven();
    assert.deepEqual(
      chains
        .filter(({ last }) => last > 0)
        .map(({ replica }) => replica)
        .sort(),
      ['drawbridge-x', 'drawbridge-y'],
    );
  });
});
