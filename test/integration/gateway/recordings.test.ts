import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayProcess } from '../../../sandbox/gateway-process.ts';
import { until } from '../../../sandbox/wait.ts';
import type { Grant } from '../../../src/api/access/grant.ts';
import { RecordingsVerifier } from '../../../src/audit/verify/recordings.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';
import { scriptOf, tryAsReader } from '../../support/page-commands.ts';
import { shown } from '../../support/shown-output.ts';

describe('a recorded session through the gateway', () => {
  let stage: GatewayStage;
  let folder: string;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open((directory) => {
      folder = mkdtempSync(join(directory, 'recordings-'));
      return [`--recordings=${folder}`];
    });
  });
  after(() => stage?.close());

  const grantWith = (session: Partial<NonNullable<Grant['session']>>): Promise<StagedGrant> =>
    stage.grant({ over: { session: { via: 'Gateway', ...session } } });
  /** The session of the grant, once its recording is complete. */
  const recorded = async ({ request }: StagedGrant): Promise<string> => {
    let session: unknown;
    await until(
      'the recording to be complete',
      async () => {
        const [line] = await stage.gateway.audit((found) => found['request'] === request && found['complete'] === true);
        session = line?.['session'];
        return session !== undefined;
      },
      { timeoutMs: 30_000 },
    );
    return String(session);
  };
  const pathOf = (session: string): string => join(folder, stage.namespace, `${session}.cast`);
  const replay = async (session: string, codes = 'o'): Promise<string> => {
    const [, ...events] = (await readFile(pathOf(session), 'utf8')).trimEnd().split('\n');
    return events
      .map((line) => JSON.parse(line) as [number, string, string])
      .filter(([, code]) => codes.includes(code))
      .map(([, , text]) => text)
      .join('');
  };
  const verify = async (): Promise<string[]> => {
    const verifier = new RecordingsVerifier();
    for (const line of (await readFile(stage.gateway.auditFile, 'latin1')).split('\n')) verifier.line(line);
    return (await verifier.check(folder)).findings.map(({ code, message }) => `${code}: ${message}`);
  };

  it('replays what a terminal showed, says so at its start, and contains no input of its own', async () => {
    const grant = await grantWith({ record: 'Required' });
    const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
    await terminal.shows(/\[drawbridge\] this session is recorded/);
    await terminal.shows(/[$#] /);
    terminal.write('echo $((40+2))\n');
    await terminal.shows(/^42/m);
    terminal.write('exit\n');
    assert.equal(await terminal.exit(), 0);
    const session = await recorded(grant);
    assert.match(await replay(session), /^42/m);
    assert.match(await replay(session, 'm'), /this session is recorded/);
    assert.equal(await replay(session, 'i'), '');
  });

  it('has the output and the errors of a command', async () => {
    const grant = await grantWith({ record: 'BestEffort' });
    const { stdout, code } = await stage.alice.kubectl(
      [...grant.via, 'exec', 'payments', '--', 'sh', '-c', 'echo out; echo err >&2'],
      { reject: false },
    );
    assert.deepEqual([stdout, code], ['out\n', 0]);
    const text = await replay(await recorded(grant));
    assert.deepEqual([text.includes('out\n'), text.includes('err\n')], [true, true]);
  });

  it('is proven by the journal, and one changed byte is found', async () => {
    const grant = await grantWith({ record: 'Required' });
    await stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', 'echo', 'paid 10']);
    const session = await recorded(grant);
    assert.deepEqual(await verify(), []);
    const content = await readFile(pathOf(session), 'utf8');
    assert.match(content, /paid 10/);
    await writeFile(pathOf(session), content.replace('paid 10', 'paid 11'));
    assert.match(String(await verify()), /^RecordingChanged: .*chunk 2 was changed/);
    await writeFile(pathOf(session), content);
  });

  describe('when its disk takes no more', () => {
    /** The kernel then refuses to let a file grow beyond `bytes`. */
    const limitFiles = (bytes: number | 'unlimited'): void => {
      execFileSync('prlimit', ['--pid', String(stage.gateway.pid), `--fsize=${bytes}:unlimited`]);
    };
    afterEach(() => limitFiles('unlimited'));
    const run = async (record: 'Required' | 'BestEffort') => {
      const grant = await grantWith({ record });
      limitFiles(2_000_000);
      const command = ['sh', '-c', 'yes "a line of the log" | head -c 4000000; echo end'];
      const result = await stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', ...command], { reject: false });
      return { ...result, lines: await stage.gateway.audit(({ request }) => request === grant.request) };
    };

    it('ends with the reason, if the recording is required', async () => {
      const { code, stdout, stderr, lines } = await run('Required');
      assert.deepEqual([code, stdout.endsWith('end\n')], [1, false]);
      assert.match(stderr, /error: the session ended at \d\d:\d\d UTC: RecordingLost/);
      assert.ok(lines.some((line) => line.verdict === 'unrecorded' && /EFBIG/.test(String(line['message']))));
    });

    it('goes on with best effort, and the journal says so', async () => {
      const { code, stdout, lines } = await run('BestEffort');
      assert.deepEqual([code, stdout.length], [0, 4_000_004]);
      assert.ok(lines.some((line) => line.verdict === 'unrecorded' && line['code'] === 'RecordingLost'));
    });
  });

  describe('of several chunks, checked by `drawbridge audit verify --recordings`', () => {
    let session: string;
    let chunks: Buffer[];

    before(async () => {
      const grant = await grantWith({ record: 'Required' });
      const command = ['sh', '-c', 'yes "a line of the log" | head -c 5000000'];
      await stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', ...command]);
      session = await recorded(grant);
      const content = await readFile(pathOf(session));
      const lines = await stage.gateway.audit((line) => line['session'] === session && line['sha256'] !== undefined);
      chunks = [];
      for (const { bytes } of lines) {
        const at = Buffer.concat(chunks).length;
        chunks.push(content.subarray(at, at + Number(bytes)));
      }
      assert.ok(chunks.length > 4, `${chunks.length} chunks`);
    });

    const run = (): Promise<{ readonly code: number | null; readonly stdout: string }> => {
      const line = scriptOf('docs/tasks/record-sessions.md', '--recordings').replace('DIR', folder);
      // The heads are in the namespace of the stage. The plane also has those of earlier gateways, whose journals are not here.
      const script = line.replace('JOURNAL...', `${stage.gateway.auditFile} -n ${stage.namespace} --partial`);
      return tryAsReader({ plane: stage.plane, folder }, script);
    };

    it('is unchanged', async () => {
      let found = await run();
      const isIntact = async (): Promise<boolean> => {
        found = await run();
        return found.code === 0;
      };
      await until('the signed head of the last line', isIntact, { timeoutMs: 40_000, everyMs: 500 }).catch(() =>
        assert.equal(found.code, 0, found.stdout),
      );
      assert.match(found.stdout, shown('tasks/record-sessions.md', 'INTACT'));
    });

    const flipped = ([header, first = Buffer.alloc(0), ...rest]: Buffer[]) => {
      const changed = Buffer.from(first);
      changed.writeUInt8(changed.readUInt8(100) ^ 1, 100);
      return [header, changed, ...rest];
    };
    for (const [what, change, number] of [
      ['one changed bit', flipped, 2],
      ['a missing end', (all: Buffer[]) => all.slice(0, -1), undefined],
    ] as const) {
      it(`is changed: ${what}`, async () => {
        const found = change(chunks).filter((chunk) => chunk !== undefined);
        await writeFile(pathOf(session), Buffer.concat(found));
        const { code, stdout } = await run();
        await writeFile(pathOf(session), Buffer.concat(chunks));
        assert.equal(code, 1, stdout);
        const finding = number === undefined ? `it ends before chunk ${chunks.length}` : `chunk ${number} was changed`;
        assert.match(stdout, new RegExp(`RecordingChanged: .*${session}.*${finding}`));
      });
    }
  });

  describe('while its folder is missing', () => {
    before(async () => {
      const { plane, namespace } = stage;
      await stage.gateway.stop();
      const flags = [`--recordings=${join(plane.directory, 'absent')}`];
      stage.gateway = await GatewayProcess.start(plane, { namespace, flags });
    });
    const run = async (record: 'Required' | 'BestEffort') => {
      const grant = await stage.grant({ over: { session: { via: 'Gateway', record } } });
      const result = await stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', 'sh', '-c', 'echo ran'], {
        reject: false,
      });
      return { ...result, lines: await stage.gateway.audit(({ request }) => request === grant.request) };
    };

    it('is refused before a byte passes, if it is required', async () => {
      const { stdout, stderr, code, lines } = await run('Required');
      assert.deepEqual([stdout, code], ['', 1]);
      assert.match(stderr, /the template requires recordings, and the gateway cannot store one now/);
      assert.doesNotMatch(stderr, /absent/);
      assert.ok(lines.some((line) => line.verdict === 'denied' && line['code'] === 'RecorderUnavailable'));
      assert.ok(lines.every(({ verdict }) => verdict !== 'opened'));
    });
  });
});
