import assert from 'node:assert/strict';
import { wrap } from '../../../src/kit/wrap.ts';

describe('wrap', () => {
  const long = 'x'.repeat(20);
  const cases: readonly (readonly [title: string, text: string, lines: readonly string[]])[] = [
    ['nothing of an empty text', '', []],
    ['a text that fits, in one line', 'twelve chars', ['twelve chars']],
    ['at the last space that fits', 'twelve chars more', ['twelve chars', 'more']],
    ['a longer word into a line of its own', `a ${long} b`, ['a', long, 'b']],
    ['not at a no-break space, and loses no character', `a ${long}\u00a0${long} b`, ['a', `${long}\u00a0${long}`, 'b']],
    ['not at an ideographic space', `a ${long}\u3000b`, ['a', `${long}\u3000b`]],
  ];
  for (const [title, text, lines] of cases) {
    it(`splits ${title}`, () => assert.deepEqual(wrap(text, 12), lines));
  }
});
