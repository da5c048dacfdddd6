import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { AuditRecord } from '../../../../src/audit/record.ts';
import { Recorder, type Recording } from '../../../../src/gateway/recording/recorder.ts';
import { SessionCast } from '../../../../src/gateway/recording/session-cast.ts';
import type { RecordingFile, RecordingSink } from '../../../../src/gateway/recording/sink.ts';
import { pluck } from '../../../support/pluck.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const session = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';

/** A sink in memory. Its calls can fail, or hang. */
class MemorySink implements RecordingSink {
  readonly flushMs = 1000;
  readonly parts: Buffer[] = [];
  fails: string | undefined;
  /** While set, calls wait for it. */
  hangs: Promise<void> | undefined;
  closed = false;

  async create(_: unknown, first: Buffer): Promise<RecordingFile> {
    await this.#take(first);
    return {
      append: (bytes) => this.#take(bytes),
      close: async () => {
        this.closed = true;
      },
    };
  }

  async read(): Promise<undefined> {}

  get events(): unknown[] {
    const [, ...events] = Buffer.concat(this.parts).toString().trimEnd().split('\n');
    return events.map((line) => JSON.parse(line));
  }

  async #take(bytes: Buffer): Promise<void> {
    await this.hangs;
    if (this.fails !== undefined) throw new Error(this.fails);
    this.parts.push(Buffer.from(bytes));
  }
}

describe('the recorder', () => {
  let clock: SimulatedClock;
  let sink: MemorySink;
  let lines: AuditRecord[];
  let lostCount: number;
  let journalFails: boolean;

  beforeEach(() => {
    clock = new SimulatedClock();
    sink = new MemorySink();
    lines = [];
    lostCount = 0;
    journalFails = false;
  });

  const recorder = (hasSink = true): Recorder =>
    new Recorder({
      sink: hasSink ? sink : undefined,
      clock,
      log: { warn: () => {} },
      onLost: () => lostCount++,
      journal: {
        append: async (line) => {
          if (journalFails && line.verdict === 'recorded') throw new Error('no space');
          lines.push(line);
        },
      },
    });
  const casts = new WeakMap<Recording, SessionCast>();
  const begin = (withInput = false, from = recorder()): Recording => {
    const cast = new SessionCast(clock, withInput);
    const recording = from.begin({
      namespace: 'payments',
      id: session,
      cast,
      record: {
        event: 'session',
        who: { user: 'alice' },
        what: { operation: 'CONNECT', apiVersion: 'v1', kind: 'Pod', namespace: 'payments' },
        session,
      },
    });
    casts.set(recording, cast);
    return recording;
  };
  const durable = async (): Promise<Recording> => {
    const recording = begin();
    await recording.durable;
    return recording;
  };
  const out = (recording: Recording, text: string | Buffer, channel = 1): void =>
    casts.get(recording)?.fromPod(Buffer.concat([Buffer.of(channel), Buffer.from(text)]), channel);
  const type = (recording: Recording, channel: number, text: string): void =>
    casts.get(recording)?.fromClient(() => Buffer.concat([Buffer.of(channel), Buffer.from(text)]), channel);
  const lostLines = (): unknown[] =>
    lines.filter(({ verdict }) => verdict === 'unrecorded').map(({ code, message }) => [code, message]);

  it('writes a header that names the session alone, before it says that the recording is durable', async () => {
    await durable();
    assert.deepEqual(JSON.parse(String(sink.parts[0])), {
      version: 2,
      width: 80,
      height: 24,
      timestamp: clock.now() / 1000,
      title: session,
    });
  });

  it('writes output, errors, sizes, and what the gateway showed, with their times, and no input', async () => {
    const recording = begin();
    type(recording, 4, '{"Width":120,"Height":40}');
    await clock.advance(250);
    out(recording, 'hello ');
    out(recording, 'oops', 2);
    type(recording, 0, 'secret');
    casts.get(recording)?.note('access ends in 2 minutes');
    await recording.end();
    assert.deepEqual(sink.events, [
      [0, 'r', '120x40'],
      [0.25, 'o', 'hello '],
      [0.25, 'o', 'oops'],
      [0.25, 'm', 'access ends in 2 minutes'],
    ]);
    assert.equal(sink.closed, true);
  });

  it('writes input if the grant says so', async () => {
    const recording = begin(true);
    type(recording, 0, 'ls\n');
    await recording.end();
    assert.deepEqual(sink.events, [[0, 'i', 'ls\n']]);
  });

  it('keeps a character that is split over two parts', async () => {
    const recording = begin();
    const bytes = Buffer.from('é');
    out(recording, bytes.subarray(0, 1));
    casts.get(recording)?.fromPod(bytes.subarray(1), undefined);
    await recording.end();
    assert.deepEqual(sink.events, [[0, 'o', 'é']]);
  });

  for (const size of ['{"Width":0,"Height":1}', '{"Width":99999,"Height":1}', 'x'.repeat(300), '[]']) {
    it(`ignores the size ${size.slice(0, 30)}`, async () => {
      const recording = begin();
      type(recording, 4, size);
      await recording.end();
      assert.deepEqual(sink.parts.length, 1);
    });
  }

  it('writes what waits after a second', async () => {
    const recording = await durable();
    out(recording, 'prompt');
    await clock.advance(999);
    assert.equal(sink.parts.length, 1);
    await clock.advance(1);
    assert.equal(sink.parts.length, 2);
    out(recording, 'again');
    await clock.advance(1000);
    assert.equal(sink.parts.length, 3, 'and again');
  });

  it('writes a line with the hash of each chunk of at most 1 MiB, and a last one with their number', async () => {
    const recording = await durable();
    for (let i = 0; i < 60; i++) {
      out(recording, 'x'.repeat(50_000));
      await clock.settle();
    }
    await recording.end();
    const full = 1024 * 1024;
    const header = sink.parts[0]?.length ?? 0;
    const last = Buffer.concat(sink.parts).length - header - 2 * full;
    assert.deepEqual(pluck(lines, 'bytes'), [header, full, full, last, undefined]);
    const all = Buffer.concat(sink.parts);
    let at = 0;
    for (const [i, { chunk, bytes = 0, sha256 }] of lines.slice(0, -1).entries()) {
      assert.equal(chunk, i + 1);
      assert.equal(
        sha256,
        createHash('sha256')
          .update(all.subarray(at, at + bytes))
          .digest('hex'),
      );
      at += bytes;
    }
    assert.equal(at, all.length);
    const { verdict, chunk, complete } = lines.at(-1) ?? {};
    assert.deepEqual([verdict, chunk, complete], ['recorded', lines.length - 1, true]);
  });

  it('refuses to be durable without a sink', async () => {
    const recording = begin(false, recorder(false));
    await assert.rejects(recording.durable, { code: 'RecorderUnavailable' });
    assert.deepEqual(lostLines(), [
      ['RecordingLost', 'the gateway runs without --recordings; set the flag, or gateway.recordings of the chart'],
    ]);
    await recording.end();
  });

  it('refuses to be durable if the sink refuses, and tells users nothing of its paths', async () => {
    sink.fails = 'EACCES: /var/recordings';
    const recording = begin();
    await assert.rejects(recording.durable, ({ message }: Error) => !message.includes('/var'));
    assert.deepEqual(lostLines(), [['RecordingLost', 'EACCES: /var/recordings']]);
  });

  it('is lost once if the disk is full, and says so at once', async () => {
    const recording = await durable();
    let told = 0;
    recording.whenLost(() => told++);
    sink.fails = 'ENOSPC: no space left on device';
    out(recording, 'x');
    await clock.advance(1000);
    out(recording, 'y');
    await recording.end();
    assert.deepEqual(lostLines(), [['RecordingLost', 'ENOSPC: no space left on device']]);
    assert.deepEqual([told, lostCount, sink.closed], [1, 1, true]);
  });

  it('has a line for what was stored before it was lost, and for nothing else', async () => {
    const recording = await durable();
    out(recording, 'x'.repeat(100_000));
    await clock.settle();
    const stored = Buffer.concat(sink.parts);
    sink.fails = 'ENOSPC: no space left on device';
    out(recording, 'y'.repeat(100_000));
    await clock.settle();
    await recording.end();
    const header = sink.parts[0]?.length ?? 0;
    const proof = createHash('sha256').update(stored.subarray(header)).digest('hex');
    assert.deepEqual(
      lines.map(({ verdict, chunk, bytes, sha256 }) => [verdict, chunk, bytes, chunk === 2 && sha256]),
      [
        ['recorded', 1, header, false],
        ['recorded', 2, stored.length - header, proof],
        ['unrecorded', undefined, undefined, false],
      ],
    );
  });

  it('is lost after 5 s if the sink hangs', async () => {
    const recording = await durable();
    let told = 0;
    recording.whenLost(() => told++);
    sink.hangs = new Promise(() => {});
    out(recording, 'x');
    await clock.advance(1000 + 4999);
    assert.equal(told, 0);
    await clock.advance(1);
    assert.equal(told, 1);
    await recording.end();
  });

  it('must drain while 256 KiB wait for the sink, and no longer once they are written', async () => {
    const recording = await durable();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    sink.hangs = promise;
    out(recording, 'x'.repeat(200_000));
    assert.equal(recording.drained, undefined);
    out(recording, 'x'.repeat(100_000));
    const { drained } = recording;
    assert.ok(drained !== undefined);
    answer();
    await drained;
    assert.equal(recording.drained, undefined);
    await recording.end();
    assert.equal(recording.isLost, false);
  });

  it('need not drain, if it is lost, so that a session with best effort goes on', async () => {
    const recording = await durable();
    sink.hangs = new Promise(() => {});
    out(recording, 'x'.repeat(300_000));
    const { drained } = recording;
    assert.ok(drained !== undefined);
    await clock.advance(5000);
    await drained;
    assert.deepEqual([recording.isLost, recording.drained], [true, undefined]);
  });

  it('is lost if more than 1 MiB waits for the sink', async () => {
    const recording = await durable();
    sink.hangs = new Promise(() => {});
    for (let i = 0; i < 16; i++) out(recording, 'x'.repeat(65_000));
    assert.equal(recording.isLost, false);
    out(recording, 'x'.repeat(65_000));
    assert.deepEqual(lostLines(), [
      ['RecordingLost', 'the volume or bucket of the recordings is too slow for the output; check its throughput'],
    ]);
  });

  it('is lost if more than 64 MiB of all sessions waits', async () => {
    const all = recorder();
    const recordings = Array.from({ length: 65 }, () => begin(false, all));
    await Promise.all(recordings.map(({ durable }) => durable));
    sink.hangs = new Promise(() => {});
    for (const recording of recordings) out(recording, 'x'.repeat(1_040_000));
    assert.deepEqual(
      pluck(recordings, 'isLost'),
      recordings.map((_, i) => i === 64),
    );
  });

  it('is lost if the journal cannot be written, because nothing would prove the recording', async () => {
    const recording = await durable();
    journalFails = true;
    out(recording, 'x');
    await clock.advance(1000);
    assert.deepEqual(lostLines(), [['RecordingLost', 'no space']]);
  });

  it('completes open recordings when the process stops', async () => {
    const all = recorder();
    const recording = begin(false, all);
    out(recording, 'last words');
    assert.equal(all.isOpen(session), true);
    await all.close();
    assert.deepEqual(sink.events, [[0, 'o', 'last words']]);
    assert.equal(lines.at(-1)?.complete, true);
    await clock.settle();
    assert.equal(all.isOpen(session), false);
  });

  it('waits for the same end if the session and the process end at once', async () => {
    const all = recorder();
    const recording = begin(false, all);
    await recording.durable;
    const { promise, resolve: release } = Promise.withResolvers<void>();
    sink.hangs = promise;
    out(recording, 'last words');
    void recording.end();
    let isClosed = false;
    const closing = all.close().then(() => {
      isClosed = true;
    });
    await clock.settle();
    assert.equal(isClosed, false, 'the sink has not taken the last words yet');
    release();
    await closing;
    assert.equal(lines.at(-1)?.complete, true);
  });

  it('has few lines for little output that comes in many parts, also while it writes', async () => {
    const recording = await durable();
    const before = lines.length;
    for (let i = 0; i < 100; i++) {
      out(recording, `line ${i}`);
      await clock.advance(100);
    }
    const written = lines.length - before;
    assert.ok(written <= 11, `${written} lines in ten seconds`);
    await recording.end();
    assert.equal(sink.events.length, 100);
  });

  it('has a line each second for output that is fast, but less than 1 MiB in it', async () => {
    const recording = await durable();
    const before = lines.length;
    for (let i = 0; i < 100; i++) {
      out(recording, 'x'.repeat(70_000));
      await clock.advance(100);
    }
    const written = lines.length - before;
    assert.ok(written >= 9 && written <= 11, `${written} lines in ten seconds`);
    await recording.end();
  });

  it('has a line for what was written last, a second after the last line', async () => {
    const recording = await durable();
    await clock.advance(900);
    out(recording, 'x'.repeat(70_000));
    await clock.settle();
    const before = lines.length;
    assert.equal(sink.parts.length, 2, 'it is stored');
    await clock.advance(1000);
    assert.equal(lines.length, before + 1);
    await recording.end();
  });

  it('is lost if the pod speaks on an unknown channel, because its output could be missing', async () => {
    const recording = await durable();
    out(recording, 'MQ==', 49);
    assert.deepEqual(lostLines(), [['RecordingLost', 'the pod sent a message on the unknown channel 49']]);
  });
});
