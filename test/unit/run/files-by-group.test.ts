import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FilesByGroup } from '../../run/files-by-group.ts';
import seconds from '../../run/seconds.json' with { type: 'json' };

const file = (path: string, seconds: number) => ({ path, group: path.split('/')[0] ?? '', seconds });

describe('test files by group', () => {
  it('are returned once each, the longest first', () => {
    const files = new FilesByGroup([file('a/short', 1), file('a/long', 3), file('a/medium', 2), file('b/other', 9)]);
    assert.deepEqual(
      Array.from({ length: 4 }, () => files.next('a')),
      ['a/long', 'a/medium', 'a/short', undefined],
    );
  });

  it('assign a process to the group with the most work for each of its processes', () => {
    const files = new FilesByGroup([file('a/1', 50), file('a/2', 50), file('b/1', 60), file('c/1', 45)]);
    assert.deepEqual(
      Array.from({ length: 4 }, () => files.join()),
      ['a', 'b', 'a', 'c'],
    );
  });

  it('assign no process to a group without files', () => {
    const files = new FilesByGroup([file('a/1', 5), file('b/1', 3)]);
    files.next('a');
    assert.equal(files.join(), 'b');
    files.next('b');
    assert.equal(files.join(), undefined);
  });

  it('assign no second process to a group with little work', () => {
    const files = new FilesByGroup([file('a/1', 10), file('a/2', 10)]);
    assert.deepEqual([files.join(), files.join()], ['a', undefined]);
  });

  it('do not count a process that has left', () => {
    const files = new FilesByGroup([file('a/1', 50), file('b/1', 40)]);
    assert.equal(files.join(), 'a');
    files.leave('a');
    assert.equal(files.join(), 'a');
  });

  it('have estimated times only for existing files', () => {
    const exists = (name: string): boolean => existsSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)));
    assert.deepEqual(
      Object.keys(seconds).filter((name) => !exists(name)),
      [],
    );
  });
});
