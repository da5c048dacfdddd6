import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayProcess } from '../../../sandbox/gateway-process.ts';
import { S3Server } from '../../../sandbox/s3-server.ts';
import { until } from '../../../sandbox/wait.ts';
import { sessionLogPath } from '../../../src/api/gateway/names.ts';
import { RecordingsVerifier } from '../../../src/audit/verify/recordings.ts';
import { program } from '../../support/client.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';
import { Person } from '../../support/person.ts';
import { shown } from '../../support/shown-output.ts';

const day = 86_400_000;
/** More than a chunk, so that the gateway writes it at once. */
const much = 'head -c 200000 /dev/zero | tr "\\0" x';
const ended = /session ended at .*: RecordingLost/;

describe('a session that is recorded in a bucket', () => {
  let stage: GatewayStage;
  let carol: Person;
  let s3: S3Server;
  let flags: string[];
  let directory: string;
  const journals: string[] = [];

  before(async function () {
    this.timeout(240_000);
    stage = await GatewayStage.open();
    carol = await Person.of(stage.plane, 'carol', ['auditors']);
    await stage.allowViews('auditors');
    directory = join(stage.plane.directory, 's3');
    await mkdir(directory);
    s3 = await S3Server.start(directory, 'recordings');
    flags = [`--s3-endpoint=${s3.url}`];
    await restart();
  });
  after(async () => {
    await s3?.stop();
    await stage?.close();
  });

  /** Starts the gateway anew, with the bucket and credentials. */
  async function restart({ bucket = 'recordings', env = s3.env, more = [] as string[] } = {}): Promise<void> {
    await stage.gateway.stop();
    stage.gateway = await GatewayProcess.start(stage.plane, {
      namespace: stage.namespace,
      flags: [`--recordings=s3://${bucket}/prod`, ...flags, ...more],
      // Hides credentials of the user who runs the tests.
      env: { HOME: directory, AWS_PROFILE: '', AWS_ACCESS_KEY_ID: '', ...env },
    });
    journals.push(stage.gateway.auditFile);
  }

  const grantWith = (record: 'Required' | 'BestEffort'): Promise<StagedGrant> =>
    stage.grant({ over: { session: { via: 'Gateway', record } } });
  const exec = ({ via }: StagedGrant, ...command: string[]) =>
    stage.alice.kubectl([...via, 'exec', 'payments', '--', ...command], { reject: false });
  const linesOf = ({ request }: StagedGrant) => stage.gateway.audit((line) => line['request'] === request);
  /** The session of the grant, once its recording is complete. */
  const recorded = (grant: StagedGrant): Promise<string> =>
    until(
      'the recording to be complete',
      async () => {
        const line = (await linesOf(grant)).find(({ complete }) => complete === true);
        return line && String(line['session']);
      },
      { timeoutMs: 30_000 },
    );
  /** A shell in a terminal, whose recording has begun. */
  const opened = async (record: 'Required' | 'BestEffort') => {
    const grant = await grantWith(record);
    const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
    await terminal.shows(/this session is recorded/);
    const session = String((await linesOf(grant))[0]?.['session']);
    await until('the header', () => readFile(join(folderOf(session), '000001.cast')).catch(() => false), {
      timeoutMs: 30_000,
    });
    return { grant, terminal, session };
  };
  /** Why the recording of the grant was lost, once it was. */
  const lossOf = (grant: StagedGrant): Promise<string> =>
    until(
      'the recording to be lost',
      async () => {
        const lost = (await linesOf(grant)).find(({ verdict }) => verdict === 'unrecorded');
        return lost && String(lost['message']);
      },
      { timeoutMs: 30_000 },
    );
  const folderOf = (session: string): string => join(s3.bucket('recordings'), 'prod', stage.namespace, session);
  const replay = async (session: string): Promise<string> => {
    const names = (await readdir(folderOf(session))).sort();
    const texts = await Promise.all(names.map((name) => readFile(join(folderOf(session), name), 'utf8')));
    const [, ...events] = texts.join('').trimEnd().split('\n');
    return events
      .map((line) => JSON.parse(line) as [number, string, string])
      .filter(([, code]) => code === 'o')
      .map(([, , text]) => text)
      .join('');
  };
  /** Verifies a copy of the bucket, as `aws s3 sync` makes one, after `change`. */
  const verify = async (change: (folder: string) => Promise<unknown> = async () => {}): Promise<string[]> => {
    const copy = join(stage.plane.directory, 'copy');
    await rm(copy, { recursive: true, force: true });
    await cp(join(s3.bucket('recordings'), 'prod'), copy, { recursive: true });
    await change(copy);
    const verifier = new RecordingsVerifier();
    for (const journal of journals)
      for (const line of (await readFile(journal, 'latin1')).split('\n')) verifier.line(line);
    return (await verifier.check(copy)).findings.map(({ code, message }) => `${code}: ${message}`);
  };

  it('replays what a terminal showed, also through the gateway', async () => {
    const grant = await grantWith('Required');
    const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
    await terminal.shows(/\[drawbridge\] this session is recorded/);
    await terminal.shows(/[$#] /);
    terminal.write('echo $((40+2))\n');
    await terminal.shows(/^42/m);
    terminal.write('exit\n');
    assert.equal(await terminal.exit(), 0);
    const session = await recorded(grant);
    assert.match(await replay(session), /^42/m);
    const { stdout } = await carol.kubectl(['get', '--raw', sessionLogPath('recordings', stage.namespace, session)]);
    const names = (await readdir(folderOf(session))).sort();
    const stored = await Promise.all(names.map((part) => readFile(join(folderOf(session), part), 'utf8')));
    assert.equal(stdout, stored.join(''));
  });

  it('is verified and joined from a copy of the bucket, as docs/tasks/record-sessions-in-a-bucket.md says', async () => {
    const page = 'docs/tasks/record-sessions-in-a-bucket.md';
    const folder = join(directory, 'reader');
    await mkdir(join(folder, 'bin'), { recursive: true });
    // The program aws is no dependency of this repository. The S3 server has a file for each object.
    const sync = `#!/bin/sh\n[ "$1 $2 $3" = 's3 sync s3://recordings/prod' ] && cp -r ${s3.bucket('recordings')}/prod "$4"\n`;
    await writeFile(join(folder, 'bin/aws'), sync, { mode: 0o755 });
    const client = `drawbridge() { node ${program} -n ${stage.namespace} "$@" --partial; }`;
    const reader = { plane: stage.plane, folder };
    const grant = await grantWith('Required');
    await exec(grant, 'echo', 'paid 10');
    const session = await recorded(grant);
    const read = (words: string): Promise<string> => {
      const script = scriptOf(page, words).replace('JOURNAL...', journals.join(' '));
      const filled = script.replaceAll('NAMESPACE', stage.namespace).replaceAll('SESSION', session);
      return runAsReader(reader, `PATH=$PWD/bin:$PATH\n${client}\n${filled}`);
    };
    await read('aws s3 sync');
    const expected = shown('tasks/record-sessions-in-a-bucket.md', 'INTACT');
    let verdict = '';
    const isIntact = async (): Promise<boolean> => {
      verdict = await read('audit verify').catch(String);
      return expected.test(verdict);
    };
    await until('the signed head of the last line', isIntact, { timeoutMs: 40_000, everyMs: 500 }).catch(() =>
      assert.match(verdict, expected),
    );
    await read('cat prod');
    assert.match(await readFile(join(folder, `${session}.cast`), 'utf8'), /"paid 10/);
  });

  it('has megabytes of output without loss, and any change of them is found', async () => {
    const grant = await grantWith('Required');
    const { stdout } = await exec(grant, 'sh', '-c', 'head -c 3000000 /dev/zero | tr "\\0" x; sleep 0.1; echo paid 10');
    assert.equal(stdout.length, 3_000_008);
    const session = await recorded(grant);
    assert.equal((await replay(session)).length, 3_000_008);
    const parts = (await readdir(folderOf(session))).sort();
    assert.ok(parts.length > 3, `${parts.length} parts`);
    assert.deepEqual(await verify(), []);

    const at = (copy: string, part: number): string => join(copy, stage.namespace, session, parts.at(part) ?? '');
    const changed = await verify(async (copy) => {
      const content = await readFile(at(copy, -1), 'utf8');
      await writeFile(at(copy, -1), content.replace('paid 10', 'paid 11'));
    });
    const missing = await verify((copy) => rm(at(copy, 1)));
    const reordered = await verify(async (copy) => {
      await rename(at(copy, 1), `${at(copy, 1)}.tmp`);
      await rename(at(copy, 2), at(copy, 1));
      await rename(`${at(copy, 1)}.tmp`, at(copy, 2));
    });
    const absent = await verify((copy) => rm(join(copy, stage.namespace, session), { recursive: true }));
    for (const findings of [changed, missing, reordered])
      assert.match(String(findings), new RegExp(`^RecordingChanged: ${stage.namespace}/${session}.cast: `));
    assert.match(String(absent), /^RecordingMissing: /);
  });

  it('lets no writer of the bucket put an object in the place of the next part', async () => {
    const { terminal, session, grant } = await opened('Required');
    await s3.copy('recordings', `prod/${stage.namespace}/${session}`, '000001.cast', '000002.cast');
    terminal.write(`${much}\n`);
    await terminal.shows(ended);
    assert.match(await lossOf(grant), /^PutObject: the S3 server answered 412 PreconditionFailed$/);
  });

  describe('while the server is gone', () => {
    before(() => restart());
    afterEach(() => s3.resume());

    it('ends, if the recording is required', async () => {
      const { terminal, grant } = await opened('Required');
      await s3.stop();
      terminal.write(`${much}\n`);
      await terminal.shows(ended);
      assert.match(await lossOf(grant), /^PutObject: .*ECONNREFUSED/);
    });
  });

  it('is proven as far as the journal goes, if the gateway is killed', async () => {
    const { terminal, session } = await opened('Required');
    terminal.write(`${much}\n`);
    const hasOutput = async (): Promise<boolean> => (await readdir(folderOf(session))).length > 1;
    await until('its output to be in the bucket', hasOutput, { timeoutMs: 30_000 });
    await stage.gateway.kill();
    await restart();
    assert.deepEqual(
      (await verify()).filter((finding) => finding.includes(session)),
      [],
    );
    const replayed = await replay(session);
    assert.match(replayed, /xxx/);
  });

  it('is deleted after the retention, after a line of the journal; credentials come from a file', async () => {
    const grant = await grantWith('Required');
    await exec(grant, 'echo', 'old');
    const kept = await grantWith('Required');
    await exec(kept, 'echo', 'young');
    const [session, young] = [await recorded(grant), await recorded(kept)];
    const at = new Date(Date.now() - 31 * day);
    for (const name of await readdir(folderOf(session))) await utimes(join(folderOf(session), name), at, at);
    const file = join(directory, 'credentials');
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, NODE_EXTRA_CA_CERTS = '' } = s3.env;
    await writeFile(
      file,
      `[default]\naws_access_key_id = ${AWS_ACCESS_KEY_ID}\naws_secret_access_key = ${AWS_SECRET_ACCESS_KEY}\n`,
    );
    await restart({ env: { NODE_EXTRA_CA_CERTS, AWS_SHARED_CREDENTIALS_FILE: file } });
    const isGone = async (): Promise<boolean> => (await readdir(folderOf(session)).catch(() => [])).length === 0;
    await until('the recording to be deleted', isGone, { timeoutMs: 30_000 });
    const deleted = await stage.gateway.audit(({ verdict }) => verdict === 'deleted');
    assert.deepEqual(
      deleted.map((line) => [line['session'], line['code']]),
      [[session, 'RecordingExpired']],
    );
    assert.match(await replay(young), /young/);
    assert.ok((await verify()).every((finding) => !finding.includes(session) && !finding.includes(young)));
  });

  const broken: Record<string, [() => Parameters<typeof restart>[0], RegExp]> = {
    'with wrong credentials': [
      () => ({ env: { ...s3.env, AWS_SECRET_ACCESS_KEY: 'wrongwrongwrong' } }),
      /^PutObject: the S3 server answered 403 SignatureDoesNotMatch$/,
    ],
    'by a server whose certificate it does not trust': [
      () => ({ env: { ...s3.env, NODE_EXTRA_CA_CERTS: '' } }),
      /^PutObject: unable to verify the first certificate/,
    ],
  };
  for (const [what, [options, reason]] of Object.entries(broken)) {
    it(`is refused ${what} before a byte passes, or goes on unrecorded with best effort`, async () => {
      await restart(options());
      const required = await grantWith('Required');
      const refused = await exec(required, 'echo', 'ran');
      assert.deepEqual([refused.stdout, refused.code], ['', 1]);
      assert.match(refused.stderr, /the template requires recordings, and the gateway cannot store one now/);
      assert.ok((await linesOf(required)).every(({ verdict }) => verdict !== 'opened'));
      assert.match(await lossOf(required), reason);
      const effort = await grantWith('BestEffort');
      assert.equal((await exec(effort, 'echo', 'ran')).stdout, 'ran\n');
      assert.match(await lossOf(effort), reason);
      const written = (await stage.gateway.log()) + (await readFile(stage.gateway.auditFile, 'utf8'));
      for (const secret of [s3.secretKey, 'wrongwrongwrong']) assert.ok(!written.includes(secret));
    });
  }
});
