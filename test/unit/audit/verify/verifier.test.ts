import assert from 'node:assert/strict';
import { HeadSigner } from '../../../../src/audit/head.ts';
import { pluck } from '../../../support/pluck.ts';
import { type Files, found, rehashed, signer, verified, Written } from './journals.ts';

const swap = (lines: readonly string[], i: number, j: number): string[] =>
  lines.map((line, at) => (at === i ? lines[j] : at === j ? lines[i] : line) ?? '');

const without = (lines: readonly string[], i: number): string[] => lines.filter((_, at) => at !== i);

describe('the verifier of audit journals', () => {
  let journal: Written;
  let lines: string[];
  beforeEach(() => {
    journal = new Written(6);
    lines = journal.lines;
  });

  it('accepts unchanged journals, and reports where the proof ends', () => {
    const head = journal.head();
    journal.write('later');
    const report = verified({ a: lines }, [head]);
    assert.deepEqual(report, {
      verdict: 'intact',
      findings: [],
      more: 0,
      stumps: [],
      keys: [signer.publicKey],
      chains: [{ chain: journal.id, replica: 'drawbridge-0', first: 1, last: 7, signedTo: 6, unproven: 1, lost: 0 }],
    });
  });

  it('reports a chain without a head', () => {
    const other = new Written(2);
    const { verdict, chains } = verified({ a: [...lines, ...other.lines] }, [journal.head()]);
    assert.equal(verdict, 'unsigned');
    assert.deepEqual(pluck(chains, 'signedTo', 'unproven'), [
      [6, 0],
      [0, 2],
    ]);
  });

  const intact: [string, (lines: string[]) => Files][] = [
    ['files of a rotation, reversed', (all) => ({ new: all.slice(4), old: all.slice(0, 2), middle: all.slice(2, 4) })],
    ['files of a rotation, oldest first', (all) => ({ old: all.slice(0, 4), new: all.slice(4) })],
    ['other lines', (all) => ({ a: ['', 'started {', ...all.flatMap((line) => [line, '{"level":"info"}']), '{'] })],
    ['prefixes of log collectors', (all) => ({ a: all.map((line) => `[pod/drawbridge-0/drawbridge] ${line}`) })],
    ['another replica in the file', (all) => ({ a: all.flatMap((line, i) => [line, ...new Written(1, i).lines]) })],
  ];
  for (const [title, arrange] of intact) {
    it(`accepts ${title}`, () => {
      const { findings } = verified(arrange(lines), [journal.head()]);
      assert.deepEqual(findings, []);
    });
  }

  const edit = (line: string): string => line.replace('"user":"alice"', '"user":"mallory"');
  const at = (i: number, change: (line: string) => string) => (all: string[]) =>
    all.map((line, index) => (index === i ? change(line) : line));
  const changes: [string, (lines: string[]) => string[], string[]][] = [
    ['a changed line', at(2, edit), ['Changed a:3']],
    ['a changed first line', at(0, edit), ['Changed a:1']],
    ['a changed last line', at(5, edit), ['Changed a:6']],
    ['a changed line with a hash to fit', at(2, (line) => rehashed(edit(line))), ['Broken a:4']],
    ['a changed last line with a hash to fit', at(5, (line) => rehashed(edit(line))), ['HeadMismatch a:6']],
    ['another number', at(2, (line) => line.replace('"seq":3', '"seq":9')), ['Changed a:3', 'Missing a:4']],
    [
      'another hash of the line before',
      at(2, (line) => line.replace(/"prev":"./, '"prev":"g')),
      ['Inserted a:3', 'Missing a:4'],
    ],
    ['a field there twice', at(2, (line) => line.replace('"event"', '"event":"grant","event"')), ['Changed a:3']],
    ['white space in a line', at(2, (line) => line.replace('"event":', '"event": ')), ['Changed a:3']],
    ['text after a line', at(2, (line) => `${line} {}`), ['Inserted a:3', 'Missing a:4']],
    ['a record in front of a line', at(2, (line) => `{"verdict":"granted"}${line}`), ['Inserted a:3', 'Missing a:4']],
    ['a line cut short', at(2, (line) => line.slice(0, -9)), ['Inserted a:3', 'Missing a:4']],
    ['a missing line', (all) => without(all, 2), ['Missing a:3']],
    ['a missing first line', (all) => without(all, 0), ['Missing a:1']],
    ['a missing last line', (all) => without(all, 5), ['Missing']],
    ['two lines exchanged', (all) => swap(all, 2, 3), ['Missing a:3', 'OutOfOrder a:4']],
    ['a line there twice', (all) => [...all.slice(0, 3), ...all.slice(2)], ['OutOfOrder a:4']],
    ['a record without a chain', (all) => [...all, '{"event":"grant","verdict":"granted"}'], ['Inserted a:7']],
    ['a record in another spelling', (all) => [...all, '{"\\u0076erdict":"granted"}'], ['Inserted a:7']],
    ['a claim of the chain', (all) => [...all.slice(0, 2), '{"chain":"x","seq":3}', ...all.slice(2)], ['Inserted a:3']],
    ['two records on a line', (all) => ['{} {"verdict":"granted"}', ...all], ['Inserted a:1']],
    ['an incomplete line that none counts', (all) => ['{"chain":"', ...all.slice(1)], ['Inserted a:1', 'Missing a:2']],
    ['an empty journal', () => [], ['Missing']],
  ];
  for (const [title, change, expected] of changes) {
    it(`finds ${title}`, () => {
      const report = verified({ a: change(lines) }, [journal.head()]);
      assert.deepEqual(found(report), expected);
      assert.equal(report.verdict, 'changed');
    });
  }

  it('finds duplicate lines in two files, and files with mixed lines', () => {
    const twice = verified({ a: lines, b: lines.slice(3) }, [journal.head()]);
    assert.deepEqual(found(twice), ['OutOfOrder b:1']);
    const odd = lines.filter((_, i) => i % 2 === 0);
    const even = lines.filter((_, i) => i % 2 === 1);
    assert.equal(verified({ odd, even }, [journal.head()]).verdict, 'changed');
  });

  it('finds a chain that was rewritten from some line on, by any head, even an old one', () => {
    const early = new Written(3);
    const [old, forged] = [early.head(), [...early.lines]];
    early.write('pod-3');
    const newest = early.head();
    forged[1] = rehashed((forged[1] ?? '').replace('alice', 'mallory'));
    const prev = JSON.parse(forged[1]).hash;
    forged[2] = rehashed((forged[2] ?? '').replace(/"prev":"[0-9a-f]*"/, `"prev":"${prev}"`));
    assert.deepEqual(found(verified({ a: forged }, [old])), ['HeadMismatch a:3']);
    assert.deepEqual(found(verified({ a: forged }, [old, newest])), ['HeadMismatch a:3', 'Missing']);
  });

  it('accepts missing older files with the option for partial journals', () => {
    const gone = new Written(3).head();
    const rest = { a: lines.slice(2) };
    assert.deepEqual(found(verified(rest, [journal.head(), gone])), ['Missing a:1', 'Missing']);
    const report = verified(rest, [journal.head(), gone], { partial: true });
    assert.equal(report.verdict, 'intact');
    assert.deepEqual(pluck(report.chains, 'first', 'last', 'unproven'), [
      [3, 6, 0],
      [0, 0, 0],
    ]);
    assert.deepEqual(found(verified({ a: lines.slice(2, 5) }, [journal.head()], { partial: true })), ['Missing']);
    assert.equal(verified({ a: [] }, [journal.head()], { partial: true }).verdict, 'intact');
  });

  describe('with failed writes', () => {
    it('accepts an incomplete line that a later line counts', () => {
      const stump = (lines[2] ?? '').slice(0, 40);
      journal.lose();
      journal.write('after');
      const report = verified({ a: [...lines.slice(0, 6), stump, ...lines.slice(6)] }, [journal.head()]);
      assert.deepEqual(
        [report.verdict, report.stumps, report.chains[0]?.lost],
        ['intact', [{ file: 'a', line: 7 }], 1],
      );
    });

    it('rejects more incomplete lines than a later line counts', () => {
      const stump = (lines[2] ?? '').slice(0, 40);
      journal.lose();
      journal.write('after');
      const report = verified({ a: [...lines.slice(0, 6), stump, stump, ...lines.slice(6)] }, [journal.head()]);
      assert.deepEqual(found(report), ['Inserted a:8']);
    });

    it('accepts an incomplete line at the end of a file, or before the next process, as the last write of a process', () => {
      const next = new Written(1);
      const stump = (lines[2] ?? '').slice(0, 40);
      for (const a of [
        [...lines, stump],
        [...lines, stump, ...next.lines],
      ]) {
        const report = verified({ a }, [journal.head(), next.head()], { partial: true });
        assert.deepEqual([found(report), report.stumps.length], [[], 1]);
      }
    });
  });

  describe('with heads', () => {
    const forger = new HeadSigner(Buffer.alloc(32, 'two'));

    it('rejects a changed one', () => {
      const report = verified({ a: lines }, [{ ...journal.head(), seq: 5 }]);
      assert.deepEqual(found(report), ['BadHead']);
      assert.equal(report.chains[0]?.signedTo, 0);
    });

    it('names the key, and rejects keys that were not given', () => {
      assert.deepEqual(verified({ a: lines }, [journal.head(forger)]).keys, [forger.publicKey]);
      const report = verified({ a: lines }, [journal.head(forger)], { keys: [signer.publicKey] });
      assert.deepEqual(found(report), ['BadHead']);
      assert.equal(verified({ a: lines }, [journal.head()], { keys: [signer.publicKey] }).verdict, 'intact');
    });

    it('accepts several of one chain, signed by several keys', () => {
      const old = journal.head(forger);
      journal.write('later');
      const report = verified({ a: lines }, [journal.head(), old]);
      assert.deepEqual([report.verdict, report.chains[0]?.signedTo], ['intact', 7]);
    });
  });
});
