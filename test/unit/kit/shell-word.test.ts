import assert from 'node:assert/strict';
import { shellWord } from '../../../src/kit/shell-word.ts';

describe('a shell word', () => {
  for (const [text, word] of [
    ['a.b-c', 'a.b-c'],
    ['', "''"],
    ['a b', "'a b'"],
    ["it's", "'it'\\''s'"],
    ["\\' ; id #", "\\\\\\'' ; id #'"],
  ] as const) {
    it(`of ${JSON.stringify(text)} is ${word}`, () => assert.equal(shellWord(text), word));
  }
});
