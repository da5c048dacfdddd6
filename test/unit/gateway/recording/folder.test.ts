import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { AuditRecord } from '../../../../src/audit/record.ts';
import { FolderSink } from '../../../../src/gateway/recording/folder-sink.ts';
import { tryToRecord } from '../../../../src/gateway/recording/open.ts';
import { RecordingRetention } from '../../../../src/gateway/recording/retention.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { withoutRoot } from '../../../support/without-root.ts';

const session = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';
const header = Buffer.from('header\n');

describe('the folder of recordings', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'recordings-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('has one file for each session, which only its owner may read', async () => {
    const file = await new FolderSink(folder).create({ namespace: 'payments', session }, header);
    await file.append(Buffer.from('more'));
    await file.close();
    const path = join(folder, 'payments', `${session}.cast`);
    assert.equal(await readFile(path, 'utf8'), 'header\nmore');
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal((await stat(join(folder, 'payments'))).mode & 0o777, 0o700);
  });

  it('is tried out by a recording that does not stay', async () => {
    const recordings = new FolderSink(folder);
    await tryToRecord(recordings, 'drawbridge-system');
    for await (const { session: left } of recordings.list()) assert.fail(`${left} stays`);
    await rm(folder, { recursive: true });
    await assert.rejects(tryToRecord(recordings, 'drawbridge-system'), /ENOENT/);
  });

  for (const name of [
    { namespace: '..', session },
    { namespace: 'a/b', session },
    { namespace: '', session },
    { namespace: 'payments', session: '../../etc/passwd' },
    { namespace: 'payments', session: `${session}\0` },
  ]) {
    it(`refuses the name ${JSON.stringify(name)}`, () =>
      assert.rejects(
        new FolderSink(folder).create(name, header),
        /cannot store recording ".*"; the namespace must be a DNS label, and the session a UUID/,
      ));
  }

  it('never writes into a file that exists', async () => {
    const sink = new FolderSink(folder);
    await (await sink.create({ namespace: 'payments', session }, header)).close();
    await assert.rejects(sink.create({ namespace: 'payments', session }, header), { code: 'EEXIST' });
  });

  it('follows no link, neither of a namespace nor of a session', async () => {
    const outside = join(folder, 'outside');
    await mkdir(outside);
    await symlink(outside, join(folder, 'payments'));
    const sink = new FolderSink(folder);
    await assert.rejects(sink.create({ namespace: 'payments', session }, header), /is not a folder/);
    await mkdir(join(folder, 'other'));
    await symlink(join(outside, 'x'), join(folder, 'other', `${session}.cast`));
    await assert.rejects(sink.create({ namespace: 'other', session }, header), { code: 'EEXIST' });
  });

  it('gives back what a recording has so far', async () => {
    const sink = new FolderSink(folder);
    const file = await sink.create({ namespace: 'payments', session }, header);
    await file.append(Buffer.from('more'));
    const stored = await sink.read({ namespace: 'payments', session });
    assert.ok(stored);
    assert.equal(await text(stored), 'header\nmore');
    await file.close();
  });

  it('gives back nothing for an absent name, a name that is no recording, a link, or a folder', async () => {
    const sink = new FolderSink(folder);
    await (await sink.create({ namespace: 'payments', session }, header)).close();
    await symlink(join(folder, 'payments'), join(folder, 'linked'));
    await mkdir(join(folder, 'other'));
    await symlink(join(folder, 'payments', `${session}.cast`), join(folder, 'other', `${session}.cast`));
    await mkdir(join(folder, 'third', `${session}.cast`), { recursive: true });
    for (const name of [
      { namespace: 'absent', session },
      { namespace: 'payments', session: session.replace('0', '1') },
      { namespace: '../payments', session },
      { namespace: 'payments', session: `../payments/${session}` },
      { namespace: 'linked', session },
      { namespace: 'other', session },
      { namespace: 'third', session },
    ]) {
      assert.equal(await sink.read(name), undefined, JSON.stringify(name));
    }
  });

  it('must exist', () =>
    assert.rejects(new FolderSink(join(folder, 'absent')).create({ namespace: 'payments', session }, header), {
      code: 'ENOENT',
    }));

  describe('with retention', () => {
    const day = 86_400_000;
    let clock: SimulatedClock;
    let lines: AuditRecord[];
    let retention: RecordingRetention;
    let open: string[];
    let warnings: string[];
    beforeEach(async () => {
      clock = new SimulatedClock();
      lines = [];
      open = [];
      warnings = [];
      retention = new RecordingRetention({
        recordings: new FolderSink(folder),
        retentionMs: 30 * day,
        isOpen: (name) => open.includes(`${name.namespace}/${name.session}`),
        journal: { append: async (line) => void lines.push(line) },
        clock,
        log: { warn: (text) => void warnings.push(text) },
      });
      await mkdir(join(folder, 'payments'));
    });
    afterEach(() => retention.close());

    const put = async (name: string, ageMs: number): Promise<string> => {
      const path = join(folder, 'payments', name);
      await writeFile(path, 'x');
      const at = new Date(clock.now() - ageMs);
      await utimes(path, at, at);
      return path;
    };
    const exists = (path: string): Promise<boolean> =>
      stat(path).then(
        () => true,
        () => false,
      );

    it('loses recordings that are older, after a line of the journal', async () => {
      const path = await put(`${session}.cast`, 30 * day);
      await retention.start();
      assert.equal(await exists(path), false);
      assert.deepEqual(
        lines.map(({ verdict, what, code, ...line }) => [verdict, what.namespace, line.session, code]),
        [['deleted', 'payments', session, 'RecordingExpired']],
      );
    });

    it('keeps younger ones, those that are open, and files of others', async () => {
      const other = session.replace('0b', '0c');
      const paths = [
        await put(`${session}.cast`, 30 * day - 1),
        await put(`${other}.cast`, 60 * day),
        await put('notes.txt', 60 * day),
        await put('notes.cast', 60 * day),
      ];
      open = [`payments/${other}`];
      await retention.start();
      assert.deepEqual(await Promise.all(paths.map(exists)), [true, true, true, true]);
      assert.deepEqual(lines, []);
    });

    it('does not open a folder whose name is no namespace, such as lost+found', async () => {
      await chmod(folder, 0o755);
      await mkdir(join(folder, 'lost+found'), { mode: 0 });
      await withoutRoot(() => retention.start());
      assert.deepEqual(warnings, []);
    });

    it('follows no link', async () => {
      const outside = await mkdtemp(join(tmpdir(), 'outside-'));
      const path = join(outside, `${session}.cast`);
      await writeFile(path, 'x');
      await utimes(path, new Date(0), new Date(0));
      await symlink(outside, join(folder, 'linked'));
      await symlink(path, join(folder, 'payments', `${session}.cast`));
      await retention.start();
      assert.equal(await exists(path), true);
      assert.deepEqual(lines, []);
      await rm(outside, { recursive: true });
    });
  });
});
