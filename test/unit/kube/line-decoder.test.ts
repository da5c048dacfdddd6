import assert from 'node:assert/strict';
import fc from 'fast-check';
import { LineDecoder } from '../../../src/kube/line-decoder.ts';
import { anyCharacter } from '../../support/any-character.ts';

describe('line decoder', () => {
  it('returns the same lines for any chunks', () => {
    const line = fc.string({ unit: anyCharacter }).map((text) => text.replaceAll('\n', ' '));
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat(64)), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        const decoder = new LineDecoder();
        const found: string[] = [];
        let at = 0;
        for (const cut of cuts) {
          found.push(...decoder.push(bytes.subarray(at, at + cut)));
          at += cut;
        }
        found.push(...decoder.push(bytes.subarray(at)));
        const expected = lines.filter((text) => text.trim() !== '');
        assert.deepEqual(found, expected);
      }),
      { seed: 7, numRuns: 300 },
    );
  });

  it('keeps an incomplete line', () => {
    const decoder = new LineDecoder();
    assert.deepEqual(decoder.push(Buffer.from('one\ntw')), ['one']);
    assert.deepEqual(decoder.push(Buffer.from('o')), []);
    assert.deepEqual(decoder.push(Buffer.from('\n')), ['two']);
  });

  it('rejects a line without end', () => {
    const decoder = new LineDecoder();
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    assert.throws(() => {
      for (let i = 0; i < 17; i++) decoder.push(chunk);
    }, RangeError);
  });
});
