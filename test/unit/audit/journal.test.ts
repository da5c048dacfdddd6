import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
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
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { WriteSync } from '../../../src/audit/fd-writer.ts';
import { type OpenJournal, openJournal } from '../../../src/audit/journal.ts';
import type { AuditRecord } from '../../../src/audit/record.ts';
import { pluck } from '../../support/pluck.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const record = (name: string): AuditRecord => ({
  event: 'admission',
  verdict: 'allowed',
  who: { user: 'alice', groups: ['devs'] },
  what: { operation: 'CREATE', apiVersion: 'v1', kind: 'Pod', namespace: 'payments', name },
});

interface Line {
  readonly chain: string;
  readonly seq: number;
  readonly lost?: number;
  readonly prev: string;
  readonly hash: string;
  readonly what: { readonly name: string };
}

/** The lines of a journal; a torn one is undefined. */
const read = (text: string): (Line | undefined)[] =>
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

  it('writes one line for each record, in order, with a sequence number, the time, and the replica', async () => {
    const journal = open();
    await Promise.all(Array.from({ length: 50 }, (_, index) => journal.append(record(`pod-${index}`))));
    const lines = read(readFileSync(path, 'utf8'));
    assert.deepEqual(
      lines.map((line) => [line?.seq, line?.what.name]),
      Array.from({ length: 50 }, (_, index) => [index + 1, `pod-${index}`]),
    );
    const { chain, prev, hash, ...first } = lines[0] ?? {};
    assert.match(chain ?? '', /^[0-9a-f]{24}$/);
    assert.equal(prev, '');
    assert.match(hash ?? '', /^[0-9a-f]{64}$/);
    assert.deepEqual(first, {
      seq: 1,
      time: '2026-11-21T09:00:00.000000Z',
      replica: 'drawbridge-0',
      ...record('pod-0'),
    });
  });

  it('has written the line when append resolves, into a file that only the owner may read', async () => {
    await open().append(record('now'));
    assert.deepEqual(names(readFileSync(path, 'utf8')), ['now']);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it('appends to the lines of earlier processes', async () => {
    await open().append(record('first'));
    await open().append(record('second'));
    assert.deepEqual(names(readFileSync(path, 'utf8')), ['first', 'second']);
  });

  it('loses no acknowledged line when the process is killed, or when it reopens a socket', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', join(import.meta.dirname, 'append-and-die.ts'), path], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [output, [, signal]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    assert.equal(signal, 'SIGKILL');
    // Node gives a child a socket instead of a pipe, and /dev/stdout cannot be opened then.
    assert.deepEqual(names(output), ['to a socket', 'after it was opened anew']);
    assert.equal(names(readFileSync(path, 'utf8')).length, 200);
  });

  it('follows a rotation on reopen', async () => {
    const journal = open();
    await journal.append(record('old'));
    renameSync(path, `${path}.1`);
    journal.reopen();
    await journal.append(record('new'));
    assert.deepEqual(names(readFileSync(`${path}.1`, 'utf8')), ['old']);
    assert.deepEqual(names(readFileSync(path, 'utf8')), ['new']);
  });

  it('keeps the open file if reopening fails', async () => {
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
      message:
        /^cannot open the audit journal \/.*\/missing\/audit\.log: ENOENT.*; check that the server can create and write this file$/,
    });
  });

  it('asks to check the file if the disk is not full', async () => {
    const journal = open(() => {
      throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
    });
    await assert.rejects(journal.append(record('lost')), {
      message: `cannot write to the audit journal ${path}: EIO: i/o error; check the file, or restart with another --audit-log`,
    });
  });

  it('fails the record on a disk error and recovers by itself', async () => {
    let broken = true;
    const journal = open((fd, bytes, offset) => {
      if (broken) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      return writeSync(fd, bytes, offset);
    });
    assert.equal(journal.available, true);
    await assert.rejects(journal.append(record('lost')), {
      code: 'AuditUnavailable',
      message: `cannot write to the audit journal ${path}: ENOSPC: no space left on device; free disk space, or restart with another --audit-log`,
    });
    await assert.rejects(journal.append(record('lost too')), { code: 'AuditUnavailable' });
    assert.equal(journal.available, false);
    broken = false;
    await journal.append(record('back'));
    assert.equal(journal.available, true);
    const lines = read(readFileSync(path, 'utf8'));
    assert.deepEqual(
      lines.map((line) => [line?.seq, line?.lost, line?.what.name]),
      [[1, 2, 'back']],
    );
    await journal.append(record('next'));
    assert.equal(read(readFileSync(path, 'utf8'))[1]?.lost, undefined);
  });

  it('fails on a full disk', async () => {
    const journal = open(undefined, '/dev/full');
    await assert.rejects(journal.append(record('lost')), { code: 'AuditUnavailable', message: /ENOSPC/ });
    assert.equal(journal.available, false);
  });

  it('counts a line as written if only its newline is missing', async () => {
    let cut = true;
    const journal = open((fd, bytes, offset) => {
      if (!cut) return writeSync(fd, bytes, offset);
      if (offset === bytes.length - 1) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
      return writeSync(fd, bytes, offset, bytes.length - 1 - offset);
    });
    await journal.append(record('whole'));
    cut = false;
    await journal.append(record('next'));
    const lines = read(readFileSync(path, 'utf8'));
    assert.deepEqual(
      lines.map((line) => [line?.seq, line?.lost, line?.what.name]),
      [
        [1, undefined, 'whole'],
        [2, undefined, 'next'],
      ],
    );
  });

  it('begins a new line after an incomplete line of another process', async () => {
    writeFileSync(path, '{"chain":"00');
    await open().append(record('whole'));
    assert.deepEqual(names(readFileSync(path, 'utf8')), [undefined, 'whole']);
  });

  it('chains its lines by hashes over their bytes, across rotations', async () => {
    const journal = open();
    assert.deepEqual([journal.head.seq, journal.head.hash], [0, '']);
    await journal.append(record('one'));
    await journal.append(record('zwei ü \u0007'));
    renameSync(path, `${path}.1`);
    journal.reopen();
    await journal.append(record('three'));
    const printed = [`${path}.1`, path].flatMap((file) => readFileSync(file, 'utf8').trimEnd().split('\n'));
    const lines = printed.map((line) => JSON.parse(line) as Line);
    assert.deepEqual(pluck(lines, 'prev'), ['', lines[0]?.hash, lines[1]?.hash]);
    for (const [i, line] of printed.entries()) {
      // Like in a shell: sed 's/,"hash":"[0-9a-f]*"}$/}/' | sha256sum.
      const hashed = line.replace(/,"hash":"[0-9a-f]*"}$/, '}');
      assert.equal(createHash('sha256').update(hashed).digest('hex'), lines[i]?.hash);
    }
    assert.deepEqual(journal.head, { chain: lines[0]?.chain, seq: 3, hash: lines[2]?.hash });
  });

  it('begins a new chain in each process', () => assert.notEqual(open().head.chain, open().head.chain));

  it('leaves an incomplete line as a separate line', async () => {
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

  it('leaves an incomplete line as a separate line if standard output is reopened in between', async () => {
    let [room, output] = [20, ''];
    const writeSync: WriteSync = (_, bytes, offset) => {
      if (room === 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      const written = bytes.subarray(offset, offset + room);
      output += Buffer.from(written).toString();
      room -= written.length;
      return written.length;
    };
    const clock = new SimulatedClock();
    const journal = openJournal({ destination: { fd: 1 }, replica: 'drawbridge-0', clock, writeSync });
    opened.push(journal);
    await assert.rejects(journal.append(record('torn')), {
      code: 'AuditUnavailable',
      message:
        /^cannot write to the audit journal standard output: ENOSPC: .*; check the log collector, or restart with another --audit-log$/,
    });
    journal.reopen();
    room = Number.MAX_SAFE_INTEGER;
    await journal.append(record('whole'));
    assert.deepEqual(names(output), [undefined, 'whole']);
  });

  it('stops waiting for a stalled reader, at once the second time, and continues when it reads again', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      let tries = 0;
      const journal = open((fd, bytes, offset) => {
        tries++;
        return writeSync(fd, bytes, offset);
      }, pipe);
      const refused = async (name: string): Promise<number> => {
        tries = 0;
        await assert.rejects(journal.append(record(name)), {
          code: 'AuditUnavailable',
          message: /journal \/.*\/pipe: its reader did not read for 50 ms \(EAGAIN: .*\); check the log collector$/,
        });
        return tries;
      };
      let written = 0;
      while (
        await journal.append(record(`pod-${written}`)).then(
          () => true,
          () => false,
        )
      )
        written++;
      assert.equal(tries - written, 51, 'once, and after each of 50 pauses of a millisecond');
      assert.equal(await refused('stalled'), 1);
      const buffer = Buffer.alloc(1 << 20);
      const text = buffer.toString('utf8', 0, readSync(reader, buffer));
      assert.equal(read(text).filter((line) => line !== undefined).length, written);
      await journal.append(record('again'));
      assert.deepEqual(names(buffer.toString('utf8', 0, readSync(reader, buffer))).at(-1), 'again');
    } finally {
      closeSync(reader);
    }
  });

  it('stops waiting for a stalled reader after 50 ms, however long each pause was', async () => {
    /** A clock that advances by 20 ms with each read, as on a busy machine. */
    class SlowClock extends SimulatedClock {
      #looks = 0;
      override monotonic(): number {
        return 20 * this.#looks++;
      }
    }
    let tries = 0;
    const writeSync = (): never => {
      tries++;
      throw Object.assign(new Error('EAGAIN: try again'), { code: 'EAGAIN' });
    };
    const destination = { path };
    const journal = openJournal({ destination, replica: 'drawbridge-0', clock: new SlowClock(), writeSync });
    opened.push(journal);
    await assert.rejects(journal.append(record('stalled')), { code: 'AuditUnavailable' });
    assert.equal(tries, 3);
  });

  it('fails without waiting if its pipe has no reader', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    assert.throws(() => open(undefined, pipe), { code: 'AuditUnavailable', message: /ENXIO/ });
  });
});
