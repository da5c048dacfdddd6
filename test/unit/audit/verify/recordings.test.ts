import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { partName, RecordingsVerifier } from '../../../../src/audit/verify/recordings.ts';
import { withoutRoot } from '../../../support/without-root.ts';

const session = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';
const chunks = ['header\n', 'first chunk\n', 'second chunk\n'];
const name = `payments/${session}.cast`;

const line = (fields: object, namespace = 'payments'): string =>
  JSON.stringify({ event: 'session', verdict: 'recorded', what: { namespace }, session, ...fields });
const chunkLine = (text: string, i: number): string =>
  line({ chunk: i + 1, bytes: text.length, sha256: createHash('sha256').update(text).digest('hex') });
const complete = line({ chunk: 3, complete: true });
const deleted = line({ verdict: 'deleted', code: 'RecordingExpired' });
const journal = [...chunks.map(chunkLine), complete];

describe('the verification of recordings', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'recordings-'));
    await mkdir(join(folder, 'payments'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const put = (content: string, path = name): Promise<void> => writeFile(join(folder, path), content);
  const check = async (lines: readonly string[], partial = false, only?: string) => {
    const verifier = new RecordingsVerifier(only);
    for (const text of lines) verifier.line(text);
    const { findings, report } = await verifier.check(folder, partial);
    return { findings: findings.map(({ code, message }) => `${code}: ${message}`), report };
  };
  const findings = async (lines: readonly string[]): Promise<string[]> => (await check(lines)).findings;
  const none = { complete: 0, incomplete: 0, deleted: 0, unchecked: 0, unprovenBytes: 0 };

  it('finds nothing in a complete recording, in whatever order its lines are given', async () => {
    await put(chunks.join(''));
    assert.deepEqual(await check([...journal].reverse()), { findings: [], report: { ...none, complete: 1 } });
  });

  it('checks recordings of megabytes', async () => {
    const large = Array.from({ length: 40 }, (_, i) => String(i % 10).repeat(65_536));
    await put(large.join(''));
    const lines = [...large.map(chunkLine), line({ chunk: 40, complete: true })];
    assert.deepEqual(await findings(lines), []);
    await put(`${large.join('').slice(0, -1)}x`);
    assert.deepEqual(await findings(lines), [`RecordingChanged: ${name}: chunk 40 was changed, removed, or moved`]);
  });

  for (const [title, content, message] of [
    ['a changed byte', 'header\nfirst chunk\nsecond chunK\n', 'chunk 3 was changed, removed, or moved'],
    ['a missing chunk', 'header\nsecond chunk\n', 'chunk 2 was changed, removed, or moved'],
    ['chunks in another order', 'header\nsecond chunk\nfirst chunk\n', 'chunk 2 was changed, removed, or moved'],
    ['a missing end', 'header\nfirst chunk\nsecond', 'it ends before chunk 3 of 3 is complete'],
    ['an empty file', '', 'it ends before chunk 1 of 3 is complete'],
    ['appended bytes', `${chunks.join('')}x`, 'bytes follow its last chunk'],
  ] as const) {
    it(`finds ${title}`, async () => {
      await put(content);
      assert.deepEqual(await findings(journal), [`RecordingChanged: ${name}: ${message}`]);
    });
  }

  it('finds a missing file', async () => {
    assert.deepEqual(await findings(journal), [
      `RecordingMissing: ${name}: it is not in the folder, although the journal has lines about its chunks and none about its deletion; if it is stored elsewhere, copy it to the folder; otherwise it was removed without the gateway`,
    ]);
  });

  it('misses no other recording than the one that it checks', async () => {
    const other = 'a0000000-7f2a-4a52-8d0a-3f6c1d2e9a10';
    assert.deepEqual(await check(journal, false, other), { findings: [], report: none });
    await put(chunks.join(''));
    assert.deepEqual((await check(journal, false, session)).report, { ...none, complete: 1 });
  });

  it('accepts a missing file that retention deleted', async () =>
    assert.deepEqual(await check([...journal, deleted]), { findings: [], report: { ...none, deleted: 1 } }));

  it('does not open a folder whose name is no namespace, such as lost+found', async () => {
    await chmod(folder, 0o755);
    await mkdir(join(folder, 'lost+found'), { mode: 0 });
    assert.deepEqual(await withoutRoot(() => check([])), { findings: [], report: none });
  });

  it('does not check a file without lines', async () => {
    await put('x');
    for (const partial of [false, true])
      assert.deepEqual(await check([], partial), { findings: [], report: { ...none, unchecked: 1 } });
  });

  it('expects no file of a recording that was lost before its first chunk, and proves nothing about one that exists', async () => {
    const lost = line({ verdict: 'unrecorded', code: 'RecordingLost' });
    assert.deepEqual(await check([lost]), { findings: [], report: none });
    await put('header');
    assert.deepEqual(await check([lost]), { findings: [], report: { ...none, incomplete: 1, unprovenBytes: 6 } });
  });

  it('finds the missing file of a recording that was lost later', async () => {
    const lost = line({ verdict: 'unrecorded' });
    assert.match(String(await findings([...journal.slice(0, 2), lost])), /^RecordingMissing/);
  });

  it('finds chunks without a line', async () => {
    await put(chunks.join(''));
    assert.deepEqual(await findings(journal.toSpliced(1, 1)), [
      `RecordingChanged: ${name}: the journal has no line about its chunk 2; if older files have this line, give these files, too`,
    ]);
  });

  it('finds two lines that contradict each other', async () => {
    await put(chunks.join(''));
    assert.deepEqual(await findings([...journal, chunkLine('other', 1)]), [
      `RecordingChanged: ${name}: the journal has two different lines about its chunk 2`,
    ]);
  });

  it('counts bytes that no line covers yet, if the recording is not complete', async () => {
    await put(`${chunks.join('')}tail`);
    const report = { ...none, incomplete: 1, unprovenBytes: 4 };
    assert.deepEqual(await check(journal.slice(0, 3)), { findings: [], report });
  });

  describe('of parts, copied from a bucket', () => {
    const putParts = async (parts: readonly string[]): Promise<void> => {
      await mkdir(join(folder, 'payments', session));
      await Promise.all(
        parts.map((text, i) => (text === '' ? undefined : put(text, `payments/${session}/${partName(i + 1)}`))),
      );
    };

    it('finds nothing, however the chunks are spread over the parts', async () => {
      await putParts(['header\n', 'first chunk\nsecond ', 'chunk\n']);
      await put('x', `payments/${session}/notes.txt`);
      await mkdir(join(folder, 'payments', '.uploads'));
      assert.deepEqual(await check(journal), { findings: [], report: { ...none, complete: 1 } });
    });

    it('reads more than nine parts in order', async () => {
      const many = Array.from({ length: 12 }, (_, i) => `chunk ${i}\n`);
      await putParts(many);
      const lines = [...many.map(chunkLine), line({ chunk: 12, complete: true })];
      assert.deepEqual(await findings(lines), []);
    });

    for (const [title, parts, message] of [
      ['a changed byte', ['header\n', 'first chunk\n', 'second chunK\n'], 'chunk 3 was changed, removed, or moved'],
      ['a missing part', ['header\n', '', 'second chunk\n'], 'chunk 2 was changed, removed, or moved'],
      ['a missing last part', ['header\n', 'first chunk\n'], 'it ends before chunk 3 of 3 is complete'],
      ['parts out of order', ['header\n', 'second chunk\n', 'first chunk\n'], 'chunk 2 was changed, removed, or moved'],
      ['a part too many', [...chunks, 'x'], 'bytes follow its last chunk'],
    ] as const) {
      it(`finds ${title}`, async () => {
        await putParts(parts);
        assert.deepEqual(await findings(journal), [`RecordingChanged: ${name}: ${message}`]);
      });
    }

    it('finds a recording whose folder is empty', async () => {
      await putParts([]);
      assert.match(String(await findings(journal)), /^RecordingMissing/);
    });

    it('does not check a recording without lines', async () => {
      await putParts(['x']);
      assert.deepEqual(await check([]), { findings: [], report: { ...none, unchecked: 1 } });
    });

    it('accepts what an interrupted deletion left', async () => {
      await putParts(['', 'first chunk\n']);
      assert.deepEqual(await check([...journal, deleted]), { findings: [], report: { ...none, deleted: 1 } });
    });

    it('finds a file beside the parts', async () => {
      await putParts(chunks);
      await put(chunks.join(''));
      assert.deepEqual(await findings(journal), [`RecordingChanged: ${name}: bytes follow its last chunk`]);
    });
  });

  for (const forged of ['../../etc', '..', 'a/b', '']) {
    it(`reads no file outside the folder, if a line names the namespace ${JSON.stringify(forged)}`, async () => {
      const lines = [line({ chunk: 1, bytes: 1, sha256: '0' }, forged)];
      assert.deepEqual(await check(lines), { findings: [], report: none });
    });
  }

  it('ignores lines of other programs', async () => {
    const lines = ['"event":"session"', '{"event":"session"', 'x {"event":"session"} y'];
    assert.deepEqual(await check(lines), { findings: [], report: none });
  });
});
