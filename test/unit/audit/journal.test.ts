import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WriteSync } from '../../../src/audit/fd-writer.ts';
import { type OpenJournal, openJournal } from '../../../src/audit/journal.ts';
import type { AuditRecord } from '../../../src/audit/record.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const record = (name: string): AuditRecord => ({
  event: 'admission',
  verdict: 'allowed',
  who: { user: 'alice', groups: ['devs'] },
  what: { operation: 'CREATE', apiVersion: 'v1', kind: 'Pod', namespace: 'payments', name },
});

/** The lines of a journal; a torn one is undefined. */
const read = (text: string): ({ seq: number; what: { name: string } } | undefined)[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      try {
        return JSON.parse(line);
      } catch {
        return undefined;
      }
    });

const names = (text: string) => read(text).map((line) => line?.what.name);

describe('the audit journal', () => {
  let folder: string;
  let path: string;
  const opened: OpenJournal[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-audit-'));
    path = join(folder, 'audit.log');
  });
  afterEach(() => {
    for (const journal of opened.splice(0)) journal.close();
    rmSync(folder, { recursive: true });
  });
  const open = (writeSync?: WriteSync, at = path): OpenJournal => {
    const clock = new SimulatedClock();
    const options = { destination: { path: at }, replica: 'drawbridge-0', clock };
    const journal = openJournal(writeSync ? { ...options, writeSync } : options);
    opened.push(journal);
    return journal;
  };

  it('writes one line a record, in order, stamped with a sequence, the time and the replica', async () => {
    const journal = open();
    await Promise.all(Array.from({ length: 50 }, (_, index) => journal.append(record(`pod-${index}`))));
    const lines = read(readFileSync(path, 'utf8'));
    assert.deepEqual(
      lines.map((line) => [line?.seq, line?.what.name]),
      Array.from({ length: 50 }, (_, index) => [index + 1, `pod-${index}`]),
    );
    assert.deepEqual(lines[0], {
      seq: 1,
      time: '2026-11-21T09:00:00.000000Z',
      replica: 'drawbridge-0',
      ...record('pod-0'),
    });
  });

  it('has written the line when append resolves, and only the owner may read it', async () => {
    await open().append(record('now'));
    assert.deepEqual(names(readFileSync(path, 'utf8')), ['now']);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it('appends to what earlier processes wrote', async () => {
    await open().append(record('first'));
    await open().append(record('second'));
    assert.deepEqual(names(readFileSync(path, 'utf8')), ['first', 'second']);
  });

  it('loses nothing that was acknowledged when the process is killed', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', join(import.meta.dirname, 'append-and-die.ts'), path], {
      stdio: 'ignore',
    });
    const [, signal] = await once(child, 'exit');
    assert.equal(signal, 'SIGKILL');
    assert.equal(names(readFileSync(path, 'utf8')).length, 200);
  });

  it('follows a rotation when told to reopen', async () => {
    const journal = open();
    await journal.append(record('old'));
    renameSync(path, `${path}.1`);
    journal.reopen();
    await journal.append(record('new'));
    assert.deepEqual(names(readFileSync(`${path}.1`, 'utf8')), ['old']);
    assert.deepEqual(names(readFileSync(path, 'utf8')), ['new']);
  });

  it('keeps the file it has when reopening fails', async () => {
    const journal = open();
    renameSync(folder, `${folder}-moved`);
    try {
      assert.throws(() => journal.reopen(), { code: 'AuditUnavailable' });
      await journal.append(record('still'));
      assert.deepEqual(names(readFileSync(join(`${folder}-moved`, 'audit.log'), 'utf8')), ['still']);
    } finally {
      renameSync(`${folder}-moved`, folder);
    }
  });

  it('does not start without its file', () => {
    assert.throws(() => open(undefined, join(folder, 'missing', 'audit.log')), {
      code: 'AuditUnavailable',
      message: /cannot open the audit journal: ENOENT/,
    });
  });

  it('fails the record on a disk error and recovers by itself', async () => {
    let broken = true;
    const journal = open((fd, bytes, offset) => {
      if (broken) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      return writeSync(fd, bytes, offset);
    });
    assert.equal(journal.available, true);
    await assert.rejects(journal.append(record('lost')), { code: 'AuditUnavailable', message: /no space left/ });
    await assert.rejects(journal.append(record('lost too')), { code: 'AuditUnavailable' });
    assert.equal(journal.available, false);
    broken = false;
    await journal.append(record('back'));
    assert.equal(journal.available, true);
    const lines = read(readFileSync(path, 'utf8'));
    assert.deepEqual(
      lines.map((line) => [line?.seq, line?.what.name]),
      [[3, 'back']],
    );
  });

  it('leaves a line that broke off as a stump of its own', async () => {
    let room = 20;
    const journal = open((fd, bytes, offset) => {
      if (room === 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      const written = writeSync(fd, bytes, offset, Math.min(room, bytes.length - offset));
      room -= written;
      return written;
    });
    await assert.rejects(journal.append(record('torn')), { code: 'AuditUnavailable' });
    await assert.rejects(journal.append(record('nothing')), { code: 'AuditUnavailable' });
    room = Number.MAX_SAFE_INTEGER;
    await journal.append(record('whole'));
    await journal.append(record('next'));
    assert.deepEqual(names(readFileSync(path, 'utf8')), [undefined, 'whole', 'next']);
  });

  it('gives up on a reader that stalls, at once the second time, and goes on when it reads again', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const journal = openJournal({ destination: { path: pipe }, replica: 'drawbridge-0', clock: systemClock });
      opened.push(journal);
      let written = 0;
      const timed = async (): Promise<number> => {
        const start = performance.now();
        await assert.rejects(journal.append(record('stalled')), { code: 'AuditUnavailable', message: /EAGAIN/ });
        return performance.now() - start;
      };
      const fill = async (): Promise<number> => {
        for (;;) {
          const start = performance.now();
          try {
            await journal.append(record(`pod-${written}`));
          } catch {
            return performance.now() - start;
          }
          written++;
        }
      };
      const firstMs = await fill();
      assert.ok(firstMs >= 40 && firstMs < 1_000, `${firstMs} ms`);
      assert.ok((await timed()) < 40);
      const buffer = Buffer.alloc(1 << 20);
      const text = buffer.toString('utf8', 0, readSync(reader, buffer));
      assert.equal(read(text).filter((line) => line !== undefined).length, written);
      await journal.append(record('again'));
      assert.deepEqual(names(buffer.toString('utf8', 0, readSync(reader, buffer))).at(-1), 'again');
    } finally {
      closeSync(reader);
    }
  });

  it('says so when nobody reads its pipe, rather than wait', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    assert.throws(() => open(undefined, pipe), { code: 'AuditUnavailable', message: /ENXIO/ });
  });
});
