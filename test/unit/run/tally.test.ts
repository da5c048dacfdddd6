import assert from 'node:assert/strict';
import { type FileResult, progressLine, Tally, type TestFailure } from '../../run/tally.ts';

const result = (file: string, given: Partial<FileResult> = {}): FileResult => ({
  file,
  passed: 1,
  failures: [],
  ms: 1000,
  tests: [],
  ...given,
});

const failure = (title: string, message = 'expected 1, found 2'): TestFailure => ({ title, message });

describe('the tally of a test run', () => {
  it('ends with the total', () => {
    const tally = new Tally();
    tally.add(result('a', { passed: 3 }));
    tally.add(result('b', { passed: 4, failures: [failure('x'), failure('y')] }));
    assert.equal(tally.summary().at(-1), '7 passed, 2 failed');
  });

  it('repeats only failures right before the total', () => {
    const tally = new Tally();
    tally.add(result('good'));
    assert.ok(!tally.summary().includes('What failed:'));
    tally.add(result('bad', { failures: [failure('adds up', 'expected 1\n\nfound 2')] }));
    const lines = tally.summary();
    assert.deepEqual(lines.slice(lines.indexOf('What failed:'), -1), [
      'What failed:',
      '  bad: adds up\n      expected 1\n      found 2',
    ]);
  });
});

describe('a line of progress', () => {
  const tally = new Tally();
  tally.add(result('a', { passed: 3 }));

  it('has the finished file, the progress of the run, and the running files', () => {
    assert.equal(
      progressLine(result('a', { passed: 3 }), { tally, files: 9, running: ['b', 'c'] }),
      '[1/9 files, 3 passed] a: 3 passed, 1.0 s; now b, c',
    );
  });

  it('has the number of failed tests', () => {
    assert.equal(
      progressLine(result('a', { passed: 3, failures: [failure('x')] }), { tally, files: 1, running: [] }),
      '[1/1 files, 3 passed] a: 1 FAILED of 4, 1.0 s',
    );
  });
});
